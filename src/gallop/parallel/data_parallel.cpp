#include "gallop/parallel/data_parallel.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

std::vector<at::Tensor> shared_buffers(const ModelTensors& model, const Collectives& collectives) {
  std::vector<at::Tensor> buffers;
  if (collectives.size() == 1) return buffers;
  for (const auto& [name, tensor] : model.buffers) buffers.push_back(tensor);
  return buffers;
}

}  // namespace

void append(std::vector<PendingCollective>& calls, std::vector<PendingCollective> more) {
  calls.insert(calls.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

std::vector<size_t> in_gradient_order(const ModelTensors& model) {
  std::map<std::string, size_t> places;
  for (const std::string& name : model.gradient_order) places.emplace(name, places.size());
  const auto place_of = [&](size_t parameter) {
    const auto found = places.find(model.parameters[parameter].name);
    return found != places.end() ? found->second : places.size();
  };
  std::vector<size_t> order(model.parameters.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return place_of(a) < place_of(b); });
  return order;
}

SharedStatistics::SharedStatistics(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {
  if (buffers_.empty()) return;
  sums_ = at::zeros({count_numbers(buffers_)},
                    buffers_.front().options().dtype(type_of_means(buffers_)));
  places_ = places_in(sums_, 0, buffers_);
}

void SharedStatistics::start() const {
  copy_all(buffers_, places_);
  if (sums_.defined()) all_reduce_async(sums_);
}

void SharedStatistics::finish(int processes) const {
  if (!sums_.defined()) return;
  wait_tensor(sums_);
  sums_.div_(processes);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].copy_(buffers_[i].is_floating_point() ? places_[i] : places_[i].ceil());
  }
}

DataParallel::DataParallel(Collectives& collectives, const ModelTensors& model,
                           bool shares_batch_norm, const std::vector<at::Tensor>& parameters,
                           GradientBuckets buckets, const MakeSums& make_sums)
    : collectives_(collectives),
      named_(model.parameters),
      shares_batch_norm_(shares_batch_norm && collectives.size() > 1),
      parameters_(parameters),
      buckets_(std::move(buckets)),
      sums_(make_sums(buckets_)),
      statistics_(shared_buffers(model, collectives)),
      hooks_(parameters_, [this](size_t parameter) { note_gradient(parameter); }) {}

NamedTensors DataParallel::state() const {
  NamedTensors all = buckets_.named();
  for (const auto& one : sums_->state()) all.push_back(one);
  if (statistics_.sums().defined()) all.push_back({"statistics", statistics_.sums()});
  return all;
}

std::optional<std::vector<PendingCollective>> DataParallel::collective_calls(int64_t passes) const {
  if (shares_batch_norm_) return {};
  std::vector<PendingCollective> all;
  for (int64_t pass = 0; pass < passes; ++pass) {
    if (pass + 1 == passes) append(all, calls_of_statistics());
    append(all, sums_->collective_calls());
  }
  return all;
}

std::vector<PendingCollective> DataParallel::calls_of_statistics() const {
  return statistics_.sums().defined() ? all_reduces_of({statistics_.sums()})
                                      : std::vector<PendingCollective>();
}

void DataParallel::load_rank_state(const NamedTensors& saved, int rank, int size) {
  const at::NoGradGuard no_grad;
  const bool is_same_number = size == collectives_.size();
  if (is_same_number && rank != collectives_.rank()) return;
  if (is_same_number || rank == 0) sums_->forget();
  sums_->add_rank_state(saved, is_same_number ? 1.0 : 1.0 / collectives_.size());
}

void DataParallel::abort_sync() {
  expects_ = false;
  sums_->forget();
}

void DataParallel::begin_gradient_sync(const Pass& pass) {
  const at::NoGradGuard no_grad;
  const SubgroupScope group(collectives_);
  is_last_ = pass.is_last;
  if (is_last_) statistics_.start();
  sums_->begin(/*accumulates=*/!pass.is_first);
  buckets_.empty();
  started_ = 0;
  expects_ = true;
}

void DataParallel::finish_gradient_sync() {
  const at::NoGradGuard no_grad;
  const SubgroupScope group(collectives_);
  note_unused(named_,
              [this](const at::Tensor& parameter) { return buckets_.has_gradient_of(parameter); });
  start_buckets(buckets_.size());
  expects_ = false;
  for (size_t i = 0; i < buckets_.size(); ++i) sums_->finish(i);
  if (is_last_) statistics_.finish(collectives_.size());
}

void DataParallel::note_gradient(size_t parameter) {
  if (!uses_buckets_) return;
  const at::NoGradGuard no_grad;
  if (!expects_) {
    // In micro-batches before the last, the gradient becomes a view of the bucket, to accumulate.
    if (buckets_.are_kept()) buckets_.move(parameter);
    return;
  }
  if (buckets_.is_filled(parameter)) {
    throw InternalError("a parameter has got its gradient twice in one backward pass");
  }
  if (buckets_.fill(parameter) && !is_deferred_) start_full_ones(buckets_.size());
}

void DataParallel::start_buckets(size_t end) {
  const at::NoGradGuard no_grad;
  for (size_t i = started_; i < end; ++i) buckets_.fill_bucket(i);
  start_full_ones(end);
}

// All processes start the buckets in order, whichever is full first.
void DataParallel::start_full_ones(size_t end) {
  const SubgroupScope group(collectives_);
  for (; started_ < end && buckets_.is_full(started_); ++started_) {
    sums_->start(started_);
  }
}

void visit_batch_norm(config::Visitor& visitor, std::string& batch_norm) {
  visitor.field({.name = "batch_norm",
                 .help = "averaged: each process normalizes by the statistics of its own samples; "
                         "synchronized: by those of the whole batch (SyncBatchNorm)",
                 .choices = {"averaged", "synchronized"}},
                batch_norm);
}

}  // namespace gallop::parallel

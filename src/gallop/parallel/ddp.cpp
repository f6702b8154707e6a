#include "gallop/parallel/ddp.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/parallel/gradient_buckets.h"
#include "gallop/parallel/gradient_hooks.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

struct SharedTensors {
  std::vector<at::Tensor> parameters, buffers;
};

// The trained parameters in the order in which a backward pass produces their gradients. Parameters
// without a known place come last, in reverse order.
std::vector<at::Tensor> as_gradients_come(const ModelTensors& model) {
  std::map<std::string, size_t> places;
  for (const std::string& name : model.gradient_order) places.emplace(name, places.size());
  NamedTensors parameters(model.parameters.rbegin(), model.parameters.rend());
  const auto place_of = [&](const NamedTensor& parameter) {
    const auto found = places.find(parameter.name);
    return found != places.end() ? found->second : places.size();
  };
  std::stable_sort(parameters.begin(), parameters.end(),
                   [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  return trained(parameters);
}

// Empty for a single process, which has nothing to share.
SharedTensors what_is_shared(const ModelTensors& model, const Collectives& collectives) {
  SharedTensors shared;
  if (collectives.size() == 1) return shared;
  shared.parameters = as_gradients_come(model);
  for (const auto& [name, tensor] : model.buffers) shared.buffers.push_back(tensor);
  return shared;
}

// Buffers, which become their means over all processes. Batch counters do not increase in a process
// without samples, and become the maximum.
class SharedStatistics {
 public:
  explicit SharedStatistics(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {
    if (buffers_.empty()) return;
    sums_ = at::zeros({count_numbers(buffers_)}, buffers_.front().options().dtype(at::kFloat));
    places_ = places_in(sums_, 0, buffers_);
  }

  const at::Tensor& sums() const { return sums_; }

  void start() const {
    copy_all(buffers_, places_);
    if (sums_.defined()) all_reduce_async(sums_);
  }

  void finish(int processes) const {
    if (!sums_.defined()) return;
    wait_tensor(sums_);
    sums_.div_(processes);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].copy_(buffers_[i].is_floating_point() ? places_[i] : places_[i].ceil());
    }
  }

 private:
  std::vector<at::Tensor> buffers_, places_;
  at::Tensor sums_;
};

std::string wrong_bucket(const std::string& text) {
  const std::string wrong = text == kAutoBucket ? "" : config::wrong_bytes(text);
  return wrong.empty() ? wrong : wrong + ", or auto";
}

// The default size if none was measured.
int64_t bytes_of(const std::string& bucket) {
  return *parse_bytes(bucket == kAutoBucket ? kDefaultBucket : bucket);
}

class Ddp final : public Strategy {
 public:
  Ddp(const DdpConfig& config, Collectives& collectives, const ModelTensors& model)
      : collectives_(collectives),
        named_(model.parameters),
        shares_batch_norm_(config.batch_norm == "synchronized" && collectives.size() > 1),
        parameters_(what_is_shared(model, collectives).parameters),
        buckets_(parameters_, bytes_of(config.bucket)),
        sums_(make_bucket_sums(config.compression, buckets_, collectives.size())),
        statistics_(what_is_shared(model, collectives).buffers),
        hooks_(parameters_, [this](size_t parameter) { note_gradient(parameter); }) {}

  Collectives& collectives() override { return collectives_; }
  bool shares_batch_norm() const override { return shares_batch_norm_; }
  NamedTensors state() const override {
    NamedTensors all = buckets_.named();
    for (const auto& one : sums_->state()) all.push_back(one);
    if (statistics_.sums().defined()) all.push_back({"statistics", statistics_.sums()});
    return all;
  }

  std::optional<std::vector<at::Tensor>> sums() const override {
    if (shares_batch_norm_) return {};
    std::vector<at::Tensor> all;
    if (statistics_.sums().defined()) all.push_back(statistics_.sums());
    for (const at::Tensor& sum : sums_->sums()) all.push_back(sum);
    return all;
  }

  NamedTensors rank_state() const override { return sums_->rank_state(); }
  // If the number of processes has changed, each gets an equal fraction of the sum of all errors.
  void load_rank_state(const NamedTensors& saved, int rank, int size) override {
    const at::NoGradGuard no_grad;
    const bool is_same_number = size == collectives_.size();
    if (is_same_number && rank != collectives_.rank()) return;
    if (is_same_number || rank == 0) sums_->forget();
    sums_->add_rank_state(saved, is_same_number ? 1.0 : 1.0 / collectives_.size());
  }

  void abort_sync() override {
    expects_ = false;
    sums_->forget();
  }

  void begin_gradient_sync(int64_t /*rows*/) override {
    const at::NoGradGuard no_grad;
    statistics_.start();
    buckets_.empty();
    started_ = 0;
    expects_ = true;
  }

  void finish_gradient_sync() override {
    const at::NoGradGuard no_grad;
    note_unused(named_);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!buckets_.is_filled(i)) buckets_.fill(i);
    }
    start_full_ones();
    expects_ = false;
    for (size_t i = 0; i < buckets_.size(); ++i) sums_->finish(i);
    statistics_.finish(collectives_.size());
  }

 private:
  void note_gradient(size_t parameter) {
    const at::NoGradGuard no_grad;
    // In micro-batches before the last, the gradient becomes a view of the bucket, to accumulate.
    if (!expects_) return buckets_.move(parameter);
    if (buckets_.is_filled(parameter)) {
      throw InternalError("ddp: a parameter has got its gradient twice in one backward pass");
    }
    if (buckets_.fill(parameter)) start_full_ones();
  }

  // All processes start the buckets in order, whichever is full first.
  void start_full_ones() {
    for (; started_ < buckets_.size() && buckets_.is_full(started_); ++started_) {
      sums_->start(started_);
    }
  }

  Collectives& collectives_;
  NamedTensors named_;
  bool shares_batch_norm_;
  std::vector<at::Tensor> parameters_;
  GradientBuckets buckets_;
  std::unique_ptr<BucketSums> sums_;
  SharedStatistics statistics_;
  GradientHooks hooks_;
  size_t started_ = 0;  // The number of buckets started in this step.
  bool expects_ = false;
};

}  // namespace

void visit(config::Visitor& visitor, DdpConfig& config) {
  visitor.field({.name = "bucket",
                 .help = "gradient bucket size of the all-reduce; auto: measured when a run of "
                         "several processes starts",
                 .check = wrong_bucket},
                config.bucket);
  visitor.field({.name = "batch_norm",
                 .help = "averaged: each process normalizes by the statistics of its own samples; "
                         "synchronized: by those of the whole batch (SyncBatchNorm)",
                 .choices = {"averaged", "synchronized"}},
                config.batch_norm);
  visitor.field({.name = "compress",
                 .help = "gradient compression of the all-reduce: none, bf16, fp16, or powersgd "
                         "(low-rank factors with error feedback)",
                 .choices = {"none", "bf16", "fp16", "powersgd"}},
                config.compression.format);
  visitor.field(
      {.name = "compress_rank", .help = "rank of PowerSGD's factors", .min = 1, .max = 64},
      config.compression.rank);
}

std::unique_ptr<Strategy> make_ddp(const DdpConfig& config, Collectives& collectives,
                                   const ModelTensors& model) {
  return std::make_unique<Ddp>(config, collectives, model);
}

}  // namespace gallop::parallel

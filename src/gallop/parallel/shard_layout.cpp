#include "gallop/parallel/shard_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "gallop/kernel/update.h"
#include "gallop/parallel/gradient_buckets.h"

namespace gallop::parallel {

namespace {

constexpr int64_t kChunk = kernel::kNormChunk;
constexpr double kMostOfMean = 1.3;

int64_t elements_in_bucket(const ParameterShape& parameter) {
  return aligned_elements(parameter.elements,
                          static_cast<int64_t>(c10::elementSize(parameter.type)));
}

// The place nearest to `target` where a parameter of this many elements at `offset` may be cut: at
// its beginning, or after whole chunks with at least one whole chunk following.
int64_t nearest_cut(int64_t offset, int64_t elements, int64_t target) {
  const int64_t most = std::max<int64_t>(0, elements / kChunk - 1);
  const int64_t chunks = (target - offset + kChunk / 2) / kChunk;
  return offset + kChunk * std::clamp<int64_t>(chunks, 0, most);
}

}  // namespace

ShardLayout::ShardLayout(const std::vector<ParameterShape>& parameters,
                         const std::vector<size_t>& order, int64_t bucket_bytes, int processes)
    : processes_(processes), owners_(parameters.size(), -1), parts_(parameters.size()) {
  for (auto& elements : cut_so_far_) elements.resize(static_cast<size_t>(processes));
  find_owners(parameters);
  fill_buckets(parameters, order, bucket_bytes);
  for (Bucket& bucket : buckets_) place(bucket, parameters);
}

void ShardLayout::find_owners(const std::vector<ParameterShape>& parameters) {
  std::vector<size_t> whole;
  double elements = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].unit.is_whole) continue;
    whole.push_back(i);
    elements += static_cast<double>(parameters[i].elements);
  }
  std::stable_sort(whole.begin(), whole.end(), [&](size_t a, size_t b) {
    return parameters[a].unit.cost > parameters[b].unit.cost;
  });
  const double most = kMostOfMean * elements / processes_;
  std::vector<double> costs(static_cast<size_t>(processes_)), sizes(costs.size());
  for (const size_t i : whole) {
    const auto size = static_cast<double>(parameters[i].elements);
    size_t owner = 0;
    const auto key = [&](size_t rank) {
      return std::tuple(sizes[rank] > 0 && sizes[rank] + size > most, costs[rank], sizes[rank]);
    };
    for (size_t rank = 1; rank < costs.size(); ++rank) {
      if (key(rank) < key(owner)) owner = rank;
    }
    costs[owner] += parameters[i].unit.cost;
    sizes[owner] += size;
    owners_[i] = static_cast<int>(owner);
  }
}

void ShardLayout::fill_buckets(const std::vector<ParameterShape>& parameters,
                               const std::vector<size_t>& order, int64_t bucket_bytes) {
  struct Open {
    Bucket bucket;
    int64_t bytes = 0;
  };
  std::vector<Bucket> not_trained;
  const auto close = [&](Open& open) {
    if (open.bucket.parameters.empty()) return;
    (open.bucket.is_trained ? buckets_ : not_trained).push_back(std::move(open.bucket));
    open = {};
  };
  std::map<std::tuple<bool, bool, bool, c10::ScalarType>, Open> all;
  std::vector<Open*> in_order;  // By the last parameter that came.
  const auto close_all = [&] {
    for (Open* const open : in_order) close(*open);
    in_order.clear();
  };
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t i = order[k];
    const ParameterShape& parameter = parameters[i];
    if (k > 0 && parameters[order[k - 1]].group != parameter.group) close_all();
    Open& open =
        all[{parameter.is_trained, parameter.is_part, parameter.unit.is_whole, parameter.type}];
    const int64_t bytes =
        elements_in_bucket(parameter) * static_cast<int64_t>(c10::elementSize(parameter.type));
    if (open.bytes + bytes > bucket_bytes) close(open);
    open.bucket.is_trained = parameter.is_trained;
    open.bucket.parameters.push_back(i);
    open.bytes += bytes;
    std::erase(in_order, &open);
    in_order.push_back(&open);
  }
  close_all();
  buckets_.insert(buckets_.end(), std::make_move_iterator(not_trained.begin()),
                  std::make_move_iterator(not_trained.end()));
}

void ShardLayout::place(Bucket& bucket, const std::vector<ParameterShape>& parameters) {
  const bool is_whole = owners_[bucket.parameters.front()] >= 0;
  bucket.sizes.resize(static_cast<size_t>(processes_));
  if (is_whole) {
    std::stable_sort(bucket.parameters.begin(), bucket.parameters.end(),
                     [&](size_t a, size_t b) { return owners_[a] < owners_[b]; });
  }
  int64_t offset = 0;
  for (const size_t i : bucket.parameters) {
    bucket.offsets.push_back(offset);
    const int64_t elements = elements_in_bucket(parameters[i]);
    offset += elements;
    if (!is_whole) continue;
    bucket.sizes[static_cast<size_t>(owners_[i])] += elements;
    if (parameters[i].elements > 0) parts_[i] = {{owners_[i], 0, parameters[i].elements}};
  }
  if (!is_whole) cut(bucket, offset, parameters);
}

void ShardLayout::cut(Bucket& bucket, int64_t elements,
                      const std::vector<ParameterShape>& parameters) {
  std::vector<int64_t>& so_far = cut_so_far_[parameters[bucket.parameters.front()].is_part ? 1 : 0];
  const int64_t before = std::accumulate(so_far.begin(), so_far.end(), int64_t{0});
  std::vector<int64_t> ends;
  int64_t owned = 0;
  for (int64_t rank = 0; rank + 1 < processes_; ++rank) {
    owned += so_far[static_cast<size_t>(rank)];
    const int64_t least = ends.empty() ? 0 : ends.back();
    const int64_t ideal = (before + elements) * (rank + 1) / processes_ - owned;
    const int64_t target = std::clamp(ideal, least, elements);
    int64_t best = elements;
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const int64_t cut =
          nearest_cut(bucket.offsets[k], parameters[bucket.parameters[k]].elements, target);
      if (cut >= least && std::abs(cut - target) < std::abs(best - target)) best = cut;
    }
    ends.push_back(best);
  }
  ends.push_back(elements);
  int64_t begin = 0;
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    bucket.sizes[rank] = ends[rank] - begin;
    so_far[rank] += bucket.sizes[rank];
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const size_t i = bucket.parameters[k];
      const int64_t first = std::max<int64_t>(0, begin - bucket.offsets[k]);
      const int64_t last = std::min(parameters[i].elements, ends[rank] - bucket.offsets[k]);
      if (first < last) parts_[i].push_back({static_cast<int>(rank), first, last});
    }
    begin = ends[rank];
  }
}

ShardLayout::Part ShardLayout::part_of(size_t parameter, int rank) const {
  for (const Part& part : parts_[parameter]) {
    if (part.rank == rank) return part;
  }
  return {.rank = rank};
}

int64_t ShardLayout::elements_of(int rank) const {
  int64_t elements = 0;
  for (size_t i = 0; i < parts_.size(); ++i) elements += part_of(i, rank).size();
  return elements;
}

}  // namespace gallop::parallel

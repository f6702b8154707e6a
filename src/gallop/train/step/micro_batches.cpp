#include "gallop/train/step/micro_batches.h"

#include <algorithm>

#include "gallop/train/losses/shapes.h"

namespace gallop::train {

MicroBatches::MicroBatches(const StepConfig& config, const StepSharing& sharing)
    : config_(config),
      sharing_(sharing),
      gathers_rows_(config.loss->traits().compares_samples && sharing.divides_batch()) {}

std::vector<MicroBatch> MicroBatches::of(int64_t rows) const {
  std::vector<MicroBatch> all;
  if (const int64_t slices = sharing_.batch_slices(); slices > 0) {
    const parallel::Collectives& collectives = sharing_.strategy().collectives();
    const int64_t each = slices / collectives.size(), first = each * collectives.rank();
    const auto place = [&](int64_t slice) {
      return whole_rows_ * slice / slices - whole_rows_ * first / slices;
    };
    for (int64_t slice = first; slice < first + each; ++slice) {
      all.push_back({place(slice), place(slice + 1), slice});
    }
    return all;
  }
  // All processes must run layers with collectives, or sum gradients, the same number of times.
  const bool is_same_everywhere =
      sharing_.computes_empty_micro_batches() || gathers_rows_ || sharing_.sums_each_micro_batch();
  const int64_t count = is_same_everywhere ? most() : std::min(most(), rows);
  for (int64_t i = 0; i < count; ++i) {
    all.push_back({rows * i / count, rows * (i + 1) / count});
  }
  return all;
}

std::vector<NamedTensors> MicroBatches::slices_of(const NamedTensors& batch) const {
  std::vector<NamedTensors> all;
  for (const MicroBatch& micro_batch : of(rows_of(batch))) {
    all.push_back(slice_rows(batch, micro_batch.begin, micro_batch.end));
  }
  return all;
}

}  // namespace gallop::train

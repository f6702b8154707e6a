#include "gallop/train/recompute_choice.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/memory_use.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

namespace {

class Measurement {
 public:
  Measurement(model::Model& model, const RecomputeMeasure& measure)
      : model_(model),
        measure_(measure),
        rows_(std::min({measure.batch.front().tensor.size(0), measure.rows, kMeasuredRows})),
        statistics_(model.buffers()) {
    optim::drop_gradients(model_.parameters());
  }
  ~Measurement() {
    optim::drop_gradients(model_.parameters());
    statistics_.restore();
  }
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;

  // The peak memory of a whole micro-batch, extrapolated from fewer rows.
  int64_t peak_of(const std::vector<bool>& blocks) {
    model_.recompute(blocks);
    const int64_t all = take_step(rows_).peak;
    if (rows_ == measure_.rows || rows_ < 2) return measure_.state_bytes + all;
    const int64_t half = rows_ / 2, of_half = take_step(half).peak;
    const double slope = static_cast<double>(all - of_half) / static_cast<double>(rows_ - half);
    return measure_.state_bytes + all +
           static_cast<int64_t>(slope * static_cast<double>(measure_.rows - rows_));
  }

  // The memory held between forward and backward.
  int64_t kept_of(const std::vector<bool>& blocks) {
    model_.recompute(blocks);
    return take_step(rows_).kept;
  }

 private:
  struct Bytes {
    int64_t kept, peak;
  };

  Bytes take_step(int64_t rows) {
    Bytes bytes{};
    {
      const at::Device device = measure_.batch.front().tensor.device();
      const MemoryUse use(device);
      at::Tensor loss;
      {
        const precision::AutocastGuard autocast(measure_.precision, device.type());
        const NamedTensors batch = slice_rows(measure_.batch, 0, rows);
        loss = losses_of(*measure_.loss, model_.forward_to_head(batch), batch).sum;
      }
      bytes.kept = use.bytes();
      loss.backward();
      bytes.peak = use.peak_bytes();
    }
    optim::drop_gradients(model_.parameters());
    return bytes;
  }

  model::Model& model_;
  const RecomputeMeasure& measure_;
  int64_t rows_;
  TensorSnapshot statistics_;
};

// The blocks in the order in which they are recomputed: the largest saving comes first.
std::vector<size_t> largest_first(Measurement& measurement, size_t blocks) {
  const int64_t all = measurement.kept_of(std::vector<bool>(blocks));
  std::vector<int64_t> saved;
  for (size_t i = 0; i < blocks; ++i) {
    std::vector<bool> one(blocks);
    one[i] = true;
    saved.push_back(all - measurement.kept_of(one));
  }
  std::vector<size_t> order(blocks);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return saved[a] > saved[b]; });
  return order;
}

}  // namespace

std::vector<bool> every_block(int64_t blocks, int64_t every) {
  std::vector<bool> chosen(static_cast<size_t>(blocks));
  if (every <= 0) return chosen;
  for (int64_t i = every - 1; i < blocks; i += every) chosen[static_cast<size_t>(i)] = true;
  return chosen;
}

RecomputeChoice choose_blocks(model::Model& model, const RecomputeMeasure& measure,
                              int64_t most_bytes) {
  const auto blocks = static_cast<size_t>(model.blocks());
  RecomputeChoice choice{.blocks = std::vector<bool>(blocks), .bytes = 0};
  {
    Measurement measurement(model, measure);
    choice.bytes = measurement.peak_of(choice.blocks);
    if (choice.bytes > most_bytes) {
      RecomputeChoice all{.blocks = std::vector<bool>(blocks, true), .bytes = 0};
      all.bytes = measurement.peak_of(all.blocks);
      if (all.bytes > most_bytes) {
        throw BlocksDoNotFit(fmt::format(
            "train.activation_checkpointing.memory is {}, but a step takes {} with every block "
            "recomputed, and "
            "{} with none; use a smaller data.batch_size, or train.gradient_accumulation=2",
            format_bytes(most_bytes), format_bytes(all.bytes), format_bytes(choice.bytes)));
      }
      const auto order = largest_first(measurement, blocks);
      choice = std::move(all);
      // Binary search: the first `few` blocks are not enough, the first `enough` are.
      for (size_t few = 0, enough = blocks; enough - few > 1;) {
        const size_t middle = (few + enough) / 2;
        RecomputeChoice tried{.blocks = std::vector<bool>(blocks), .bytes = 0};
        for (size_t i = 0; i < middle; ++i) tried.blocks[order[i]] = true;
        tried.bytes = measurement.peak_of(tried.blocks);
        if (tried.bytes > most_bytes) {
          few = middle;
        } else {
          enough = middle;
          choice = std::move(tried);
        }
      }
    }
  }
  model.recompute(choice.blocks);
  return choice;
}

}  // namespace gallop::train

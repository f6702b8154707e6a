#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace gallop::data {

/// Shape of one row of a batch.
struct RowShape {
  std::vector<int64_t> sizes;  ///< Images [C, H, W], text [T], a label [].
  c10::ScalarType dtype;
  bool channels_last = false;  ///< Rows lie as [H, W, C] in memory.
};

/// Buffers that one loader thread keeps between samples.
class Scratch {
 public:
  virtual ~Scratch() = default;
};

/// Finished training samples at random access: the end of every data set's chain of reading,
/// decoding, augmenting and normalizing, and all that the loader knows of data.
class Samples {
 public:
  virtual ~Samples() = default;

  virtual int64_t size() const = 0;
  virtual RowShape input_shape() const = 0;
  virtual RowShape target_shape() const = 0;
  /// Targets are class labels, none of which is ever kIgnoredTarget: how many count follows from
  /// the number of samples. Where false, a step computes it.
  virtual bool every_target_counts() const { return false; }
  /// By default without buffers.
  virtual std::unique_ptr<Scratch> make_scratch() const { return std::make_unique<Scratch>(); }

  /// Writes sample `index` of `epoch` into one row of a batch. A pure function of its arguments,
  /// safe to call from many threads. Returns false where the sample is broken and is to be skipped;
  /// throws DataError where it is broken and that is to stop the run.
  virtual bool fill(int64_t index, int64_t epoch, void* input_row, void* target_row,
                    Scratch& scratch) const = 0;
};

}  // namespace gallop::data

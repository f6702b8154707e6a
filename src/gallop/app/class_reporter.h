#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"
#include "gallop/data/loader.h"
#include "gallop/data/signature.h"
#include "gallop/track/evaluation_report.h"

namespace gallop::app {

/// Finds out which images a model is most sure of and wrong about.
class ClassReporter {
 public:
  /// Whether the run sorts images into classes.
  static bool fits(const data::Signature& inputs);
  /// Of a run that it fits.
  explicit ClassReporter(const data::Signature& inputs) : inputs_(inputs) {}

  /// `logits`: [N, classes], of the model or its views together.
  void add(const data::Batch& batch, const at::Tensor& logits);

  /// Writes the images into a folder and says which they are, the surest first. Throws DeviceError.
  std::vector<track::EvaluationReport::Mistake> write_images(const fs::path& folder) const;

 private:
  struct Mistake {
    int64_t position = 0;  // In the part; the first of several that are as sure comes first.
    int64_t truth = 0, guess = 0;
    double probability = 0;  // Of the guess.
    data::Image image;
  };

  // Among the surest, with its image, a row of a batch.
  void keep(Mistake mistake, const at::Tensor& image);

  data::Signature inputs_;
  std::vector<Mistake> mistakes_;  // The surest first.
};

}  // namespace gallop::app

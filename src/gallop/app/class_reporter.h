#pragma once

#include <cstdint>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"
#include "gallop/data/loader.h"
#include "gallop/data/signature.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/train/tasks/task.h"

namespace gallop::app {

/// Collects the most confident misclassifications of a model.
class ClassReporter {
 public:
  /// Whether reports of such data show misclassified images.
  static bool fits(const data::Signature& inputs, const train::Task& task);
  /// Requires fits().
  explicit ClassReporter(const data::Signature& inputs) : inputs_(inputs) {}

  /// `logits`: [N, classes], of the model or its views together.
  void add(const data::Batch& batch, const at::Tensor& logits);

  /// Writes the images into a folder and returns their list, most confident first. Throws
  /// DeviceError.
  std::vector<track::EvaluationReport::Mistake> write_images(const fs::path& folder) const;

 private:
  struct Mistake {
    int64_t position = 0;  // Index in the split; ties keep the first one.
    int64_t truth = 0, guess = 0;
    double probability = 0;  // Probability of the predicted class.
    data::Image image;
  };

  // Adds a mistake to the most confident ones, with its image, a row of a batch.
  void keep(Mistake mistake, const at::Tensor& image);

  data::Signature inputs_;
  std::vector<Mistake> mistakes_;  // Most confident first.
};

}  // namespace gallop::app

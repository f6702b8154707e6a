#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/run_inputs.h"
#include "gallop/base/file.h"
#include "gallop/data/image.h"
#include "gallop/data/loader.h"

namespace gallop::app {

/// Finds out which classes a model takes for which, and which images it is most sure of and wrong
/// about (track/class_report.h).
class ClassReporter {
 public:
  /// Throws UsageError where the run does not sort images into classes.
  explicit ClassReporter(const data::Signature& inputs);

  /// `logits`: [N, classes], of the model or its views together.
  void add(const data::Batch& batch, const at::Tensor& logits);

  /// Writes the report and its images into the run's folder, in place of an earlier one. Throws
  /// DeviceError.
  void write(const fs::path& run, int64_t step, const std::string& part) const;

  /// For people: the classes that are found least often, and what is mistaken most.
  std::string text() const;

 private:
  struct Mistake {
    int64_t position = 0;  // In the part; the first of several that are as sure comes first.
    int64_t truth = 0, guess = 0;
    double probability = 0;  // Of the guess.
    data::Image image;
  };

  const std::string& name_of(size_t label) const { return inputs_.classes[label]; }
  // Among the surest, with its image, a row of a batch.
  void keep(Mistake mistake, const at::Tensor& image);

  data::Signature inputs_;
  std::vector<std::vector<int64_t>> counts_;  // By truth, then guess.
  std::vector<Mistake> mistakes_;             // The surest first.
};

}  // namespace gallop::app

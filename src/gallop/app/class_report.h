#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/app/run_inputs.h"
#include "gallop/base/file.h"
#include "gallop/data/image.h"
#include "gallop/data/loader.h"

namespace gallop::app {

/// Which classes a model takes for which, and the images that it is most sure of and wrong about.
class ClassReport {
 public:
  /// Throws UsageError where the run does not sort images into classes.
  explicit ClassReport(const RunInputs& inputs);

  /// `logits`: [N, classes], of the model or its views together.
  void add(const data::Batch& batch, const at::Tensor& logits);

  /// Writes FOLDER/report.json and the images beside it, in place of an earlier report. Throws
  /// DeviceError.
  void write(const fs::path& folder, int64_t step, const std::string& part) const;

  /// For people: the classes that are found least often, and what is mistaken most.
  std::string text() const;

 private:
  struct Mistake {
    int64_t position = 0;  // In the part; the first of several that are as sure comes first.
    int64_t truth = 0, guess = 0;
    double probability = 0;  // Of the guess.
    data::Image image;
  };

  int64_t count(int64_t truth, int64_t guess) const;
  const std::string& name_of(int64_t label) const;
  void add_mistakes(const data::Batch& batch, const at::Tensor& probabilities,
                    const at::Tensor& guesses);

  RunInputs inputs_;
  int64_t classes_;
  std::vector<int64_t> counts_;    // By truth, then guess.
  std::vector<Mistake> mistakes_;  // The surest first.
};

}  // namespace gallop::app

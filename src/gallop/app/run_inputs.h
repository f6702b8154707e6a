#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/image_samples.h"
#include "gallop/model/model.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::app {

/// What a trained model expects and what its outputs mean: kept in the run folder as inputs.yaml,
/// so that a model is used without the data that it was trained on.
struct RunInputs {
  std::string kind = "images";
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<double> mean;
  std::vector<double> deviation;
  std::vector<std::string> classes;
  int64_t context = 0;
  std::vector<std::string> vocabulary;  ///< Bytes of each token in hexadecimal digits.

  model::Task task() const;
  train::MetricTask metric_task() const;
  data::ImagePipeline pipeline() const;
};

void visit(config::Visitor& visitor, RunInputs& inputs);

/// "0a" for a line feed, and back. Throws DataError for text that is not pairs of digits.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& digits);

}  // namespace gallop::app

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/app/trained_model.h"
#include "gallop/base/error.h"
#include "gallop/data/data_module.h"
#include "gallop/data/part.h"

// The implementations of `gallop predict` for each kind of data.
namespace gallop::app {

struct PredictRequest {
  std::vector<std::string> files;
  std::string data;    ///< A folder of images, or a split of the run's data.
  std::string output;  ///< Folder for predicted masks, CSV file for predicted rows; empty: none.
  std::string prompt;
  int64_t length = 500;
  double temperature = 0.8;
  int64_t top = 3;
  int64_t seed = 1;
  bool json = false;
};

/// Predicts files or a split of the run's data one by one, so that a broken sample does not affect
/// the others. Returns kData if one was broken.
ExitCode predict_samples(TrainedModel& run, const PredictRequest& request);

/// A split of a run's data for its model; targets may be meaningless.
struct RunPart {
  std::unique_ptr<data::DataModule> data;
  const data::Samples* samples = nullptr;  ///< Belongs to `data`.
};

/// Throws UsageError, with `word` of --data, if the data have no such split.
RunPart open_part(const TrainedModel& run, data::Part part, const std::string& word);

/// Predicts text files, a split of the run's data or the text of `prompt`, one by one. Returns
/// kData if one was broken.
ExitCode predict_texts(TrainedModel& run, const PredictRequest& request);

/// Continues a text, or fills in the masked tokens of one.
void predict_text(TrainedModel& run, const PredictRequest& request);

}  // namespace gallop::app

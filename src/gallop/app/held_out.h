#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/trained_model.h"
#include "gallop/base/stop.h"
#include "gallop/data/data_module.h"
#include "gallop/data/quality/label_errors.h"

namespace gallop::app {

/// A run and the split whose samples it predicts.
struct PredictedSplit {
  TrainedModel run;
  std::unique_ptr<data::DataModule> data;
  data::Part part = data::Part::kValidation;

  const data::Samples& samples() const { return *data->split(part); }
};

/// A predicted sample: its split, and its index there.
struct PredictedSample {
  const PredictedSplit* split = nullptr;
  int64_t index = 0;
};

/// The class probabilities that runs predict for the samples of their splits: the mean over the
/// runs that predict a sample.
struct SplitPredictions {
  data::LabeledPredictions values;
  std::vector<PredictedSample> samples;  ///< One for each row of `values`.
  std::vector<int64_t> models;           ///< How many runs predict each of them.
  int64_t skipped = 0;                   ///< Broken samples.
};

/// Opens a run and its data. `part` is train, validation or test; empty: the validation split, or
/// else the test split. Throws UsageError unless samples have one class label each.
PredictedSplit open_predicted_split(const Registries& registries, const std::string& runs,
                                    const std::string& name, const std::string& checkpoint,
                                    const std::string& part);

/// The other finished runs of a cross-validation in the folder of `run`, one for each other fold
/// and seed: their recipes differ in data.fold, train.seed and formats alone.
std::vector<fs::path> other_folds(const Registries& registries, const fs::path& run);

/// Predicts the splits of all runs, which must have the same classes, and the same labels for the
/// same samples. Nothing if `stop` was requested.
std::optional<SplitPredictions> predict_splits(std::vector<PredictedSplit>& splits,
                                               const StopRequest& stop);

}  // namespace gallop::app

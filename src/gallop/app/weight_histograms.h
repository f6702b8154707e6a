#pragma once

#include <string>

#include "gallop/model/model.h"
#include "gallop/track/log.h"
#include "gallop/train/observer.h"

namespace gallop::app {

/// Records histograms of a model's weights at each evaluation (track/histogram.h).
class WeightHistograms final : public train::Observer {
 public:
  /// Continues after `step`. Throws DeviceError if the run's file cannot be written.
  WeightHistograms(const fs::path& run, int64_t step, const model::Model& model);

  void evaluated(const train::EvaluationEvent& event) override;
  void went_back(int64_t step) override;

 private:
  fs::path path_;
  track::LogWriter writer_;
  const model::Model& model_;
};

}  // namespace gallop::app

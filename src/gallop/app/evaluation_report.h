#pragma once

#include <string>
#include <vector>

#include "gallop/app/class_reporter.h"
#include "gallop/app/overlay_reporter.h"
#include "gallop/app/trained_model.h"
#include "gallop/train/evaluate.h"

namespace gallop::app {

/// The evaluated split.
struct EvaluatedPart {
  std::string name;     ///< Of the data: "test".
  int64_t samples = 0;  ///< Evaluated samples, without broken ones.
};

/// Creates the folder of a report before the evaluation, to check that it is writable. Throws
/// UsageError if `folder` has other content, DeviceError if it is not writable. `is_of_run`: it is
/// the default folder of a run, which has no other content.
void prepare_report_folder(const fs::path& folder, bool is_of_run);

/// Images of a report; either may be null.
struct ReportedImages {
  const ClassReporter* mistakes = nullptr;
  const OverlayReporter* overlays = nullptr;
};

/// Writes report.json, report.html, figures as SVG files and the images, replacing an earlier
/// report. Throws DeviceError.
void write_report(const fs::path& folder, const std::vector<TrainedModel>& runs,
                  const EvaluatedPart& part, const train::Task& task,
                  const train::Evaluation& evaluation, const ReportedImages& images);

/// A text about the classes with the lowest recall and the most frequent confusions. Empty without
/// a confusion matrix among the figures.
std::string confusion_text(const std::vector<train::FigureData>& figures);

}  // namespace gallop::app

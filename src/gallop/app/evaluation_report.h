#pragma once

#include <string>
#include <vector>

#include "gallop/app/class_reporter.h"
#include "gallop/app/overlay_reporter.h"
#include "gallop/app/trained_run.h"
#include "gallop/train/evaluate.h"

namespace gallop::app {

/// What is evaluated.
struct EvaluatedPart {
  std::string name;  ///< Of the data: "test".
  int64_t samples = 0;
};

/// Makes the folder of a report, so that it is known to be writable before the evaluation. Throws
/// UsageError where `folder` has something else in it, DeviceError where it cannot be written.
/// `is_of_run`: it is that of a run, which has nothing else.
void prepare_report_folder(const fs::path& folder, bool is_of_run);

/// Images of a report; either may be null.
struct ReportedImages {
  const ClassReporter* mistakes = nullptr;
  const OverlayReporter* overlays = nullptr;
};

/// Writes report.json, report.html, figures as SVG files and the images in place of an earlier
/// report. Throws DeviceError.
void write_report(const fs::path& folder, const std::vector<TrainedRun>& runs,
                  const EvaluatedPart& part, const train::Evaluation& evaluation,
                  const ReportedImages& images);

/// For people: the classes that are found least often, and what is mistaken most. Empty without a
/// confusion matrix among the figures.
std::string confusion_text(const std::vector<train::FigureData>& figures);

}  // namespace gallop::app

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// What an evaluation has found: its metrics and figures, of classes of images which the model
/// takes for which, and images that it is sure of and wrong about, and of segmentations images with
/// their masks. The file report.json of a folder, RUN/report, with figures as SVG files and the
/// images beside it.
struct EvaluationReport {
  struct Figure {
    std::string name;         ///< "roc-curve", which is in roc-curve.svg.
    std::string title;        ///< For people.
    std::string data = "{}";  ///< As JSON. Not read.
  };
  struct Mistake {
    std::string image;  ///< "00.png"
    int width = 0, height = 0, channels = 0;
    int64_t truth = 0, guess = 0;
    double probability = 0;  ///< Of the guess.
  };
  /// An image, and masks of it blended over it, all PNG files of one size.
  struct Overlay {
    enum class Group { kFirst, kLowest };  ///< The first of the part, or of the lowest IoU.
    Group group = Group::kFirst;
    int64_t sample = 0;           ///< Its number in the part, from 0.
    std::optional<double> iou{};  ///< Mean over its classes; nothing where no pixel counts.
    std::string image, truth, prediction, differences;
  };

  std::vector<std::string> runs{};  ///< Folders; several are an ensemble. Not read.
  int64_t step = 0;                 ///< Of the checkpoint; 0 of an ensemble.
  std::string part;                 ///< Of the data: "test".
  int64_t targets = 0;              ///< Counted by the metrics. Not read.
  /// By name; undefined without a number. Not read.
  std::vector<std::pair<std::string, std::optional<double>>> metrics{};
  std::vector<Figure> figures{};
  std::vector<std::string> classes{};
  std::vector<std::vector<int64_t>> counts{};  ///< By truth, then guess; empty where unknown.
  std::vector<Mistake> mistakes{};             ///< The surest first.
  std::vector<Overlay> overlays{};             ///< By group; the lowest IoU first.
  std::vector<std::string> colors{};  ///< Of the classes in overlays, "#e69f00"; empty without.
};

/// Where a run keeps it.
fs::path evaluation_report_of(const fs::path& run);

/// Writes report.json into a folder that has the images and figures already. Throws DeviceError.
void write_evaluation_report(const fs::path& folder, const EvaluationReport& report);

/// That of a run. Nothing where it has none. Throws DataError where it is damaged.
std::optional<EvaluationReport> read_evaluation_report(const fs::path& run);

/// Whether it is the name of a figure. No other is to be opened.
bool is_figure_name(const std::string& name);

/// The name of the file of a figure.
std::string figure_file(const std::string& name);

/// Whether a folder has a report and nothing else, is empty or not there: what is in it may be
/// replaced.
bool is_report_folder(const fs::path& folder);

/// Removes what a folder has of an earlier report.
void clear_report_folder(const fs::path& folder);

}  // namespace gallop::track

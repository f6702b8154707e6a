#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The report of an evaluation: metrics and figures; for classification, the confusion matrix and
/// the most confident mistakes; for segmentation, images with their masks. Stored as report.json in
/// a folder such as RUN/report, with the figures as SVG files and the images beside it.
struct EvaluationReport {
  struct Figure {
    std::string name;         ///< "roc-curve", stored as roc-curve.svg.
    std::string title;        ///< Display title.
    std::string data = "{}";  ///< As JSON. Not read back.
  };
  struct Mistake {
    std::string image;  ///< "00.png"
    int width = 0, height = 0, channels = 0;
    int64_t truth = 0, guess = 0;
    double probability = 0;  ///< Predicted probability.
  };
  /// An image and blended masks, all PNG files of one size.
  struct Overlay {
    enum class Group {
      kFirst,
      kLowest
    };  ///< The first ones of the split, or those with the lowest IoU.
    Group group = Group::kFirst;
    int64_t sample = 0;           ///< Index in the split, from 0.
    std::optional<double> iou{};  ///< Mean over its classes; nothing if no pixel counts.
    std::string image, truth, prediction, differences;
  };

  std::vector<std::string> runs{};  ///< Run folders; several for an ensemble. Not read back.
  int64_t step = 0;                 ///< Step of the checkpoint; 0 for an ensemble.
  std::string part;                 ///< The split of the data: "test".
  int64_t samples = 0;              ///< Number of evaluated samples. Not read back.
  int64_t targets = 0;              ///< Number of targets in the metrics. Not read back.
  /// By name; nothing for undefined values. Not read back.
  std::vector<std::pair<std::string, std::optional<double>>> metrics{};
  std::vector<Figure> figures{};
  std::vector<std::string> classes{};
  /// Confusion matrix [true class][predicted class]; empty if unknown.
  std::vector<std::vector<int64_t>> counts{};
  std::vector<Mistake> mistakes{};  ///< Most confident first.
  std::vector<Overlay> overlays{};  ///< By group; lowest IoU first.
  /// Class colors in overlays, "#e69f00"; empty without overlays.
  std::vector<std::string> colors{};
};

/// The folder of a run's report.
fs::path evaluation_report_of(const fs::path& run);

/// Writes report.json into a folder that already has the images and figures. Throws DeviceError.
void write_evaluation_report(const fs::path& folder, const EvaluationReport& report);

/// Reads the report of a run; nothing if it has none. Throws DataError if it is damaged.
std::optional<EvaluationReport> read_evaluation_report(const fs::path& run);

/// Whether this is a valid figure name. Only such files may be opened.
bool is_figure_name(const std::string& name);

/// The file name of a figure.
std::string figure_file(const std::string& name);

/// Whether a folder contains nothing but a report, is empty or does not exist, so that it may be
/// replaced.
bool is_report_folder(const fs::path& folder);

/// Removes the files of an earlier report from a folder.
void clear_report_folder(const fs::path& folder);

}  // namespace gallop::track

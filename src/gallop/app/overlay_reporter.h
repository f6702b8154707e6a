#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"
#include "gallop/data/loader.h"
#include "gallop/data/signature.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/train/tasks/task.h"

namespace gallop::app {

/// Collects a few images with the masks that a segmentation model predicts: the first of the split,
/// and those with the lowest IoU (ties: first).
class OverlayReporter {
 public:
  /// Whether reports of such data show masks.
  static bool fits(const data::Signature& inputs, const train::Task& task);
  /// Requires fits().
  explicit OverlayReporter(const data::Signature& inputs) : inputs_(inputs) {}

  /// `logits`: [N, classes, H, W], of the model or its views together; targets [N, H, W].
  void add(const data::Batch& batch, const at::Tensor& logits);

  /// Writes four images of each kind into a folder, at most 320 pixels wide or high: the image, its
  /// mask and the prediction blended over it, and their difference. Throws DeviceError.
  std::vector<track::EvaluationReport::Overlay> write_images(const fs::path& folder) const;

 private:
  struct Kept {
    int64_t position = 0;         // In the part.
    std::optional<double> iou{};  // Nothing where no pixel counts.
    data::Image image;
    std::vector<int64_t> predicted, truth;  // [H * W]
  };

  void keep_lowest(const Kept& one);

  data::Signature inputs_;
  std::vector<Kept> first_;
  std::vector<Kept> lowest_;  // The lowest first.
};

/// "#e69f00" for each class, and that of wrong pixels.
std::vector<std::string> overlay_colors(const data::Signature& inputs);
std::string difference_color();

}  // namespace gallop::app

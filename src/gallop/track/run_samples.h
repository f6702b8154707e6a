#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The first training samples of a run as its model sees them: RUN/samples/samples.json, with the
/// images beside it.
struct RunSamples {
  struct One {
    std::string label{};   ///< Name of an image's class.
    std::string image{};   ///< As the model sees it: "00.png"; empty for text.
    std::string before{};  ///< Before augmentation; empty without augmentation.
    std::string text{};    ///< Truncated if long.
  };

  std::vector<std::string> augmented_by;  ///< "random-horizontal-flip", in order.
  std::vector<One> samples;
};

/// The folder of a run's samples.
fs::path run_samples_of(const fs::path& run);

/// Writes samples.json; the images must exist. Throws DeviceError.
void write_run_samples(const fs::path& run, const RunSamples& samples);

/// Nothing if the run has none. Throws DataError if the file is damaged.
std::optional<RunSamples> read_run_samples(const fs::path& run);

}  // namespace gallop::track

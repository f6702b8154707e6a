#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The first samples that a run's model is trained on, as it sees them: RUN/samples/samples.json,
/// with the images beside it.
struct RunSamples {
  struct One {
    std::string label{};   ///< Name of an image's class.
    std::string image{};   ///< As the model sees it: "00.png"; empty for a text.
    std::string before{};  ///< The same before it was augmented; empty where nothing is.
    std::string text{};    ///< Its beginning, where it is long.
  };

  std::vector<std::string> augmented_by;  ///< "random-horizontal-flip", in their order.
  std::vector<One> samples;
};

/// Where a run keeps them.
fs::path run_samples_of(const fs::path& run);

/// Writes samples.json; the images have to be there. Throws DeviceError.
void write_run_samples(const fs::path& run, const RunSamples& samples);

/// Nothing where the run has none. Throws DataError where it is damaged.
std::optional<RunSamples> read_run_samples(const fs::path& run);

}  // namespace gallop::track

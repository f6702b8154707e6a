#pragma once

#include <map>
#include <optional>
#include <string>

#include "gallop/base/shared_folder.h"

namespace gallop::data {
struct OpenOptions;
}

namespace gallop::app {

/// Lets trainings that this process starts on this machine share decoded data, as long as it lives.
/// Environment variables tell them the folder (GALLOP_SHARED_DATA) and how many of them divide the
/// machine's memory (GALLOP_MEMORY_PARTS). If the first is set already, its value applies to them,
/// too; if it is empty nothing is shared.
class DataSharing {
 public:
  /// `trainings`: the number of concurrent trainings.
  explicit DataSharing(int trainings);

  std::map<std::string, std::string> variables() const;
  /// Why nothing can be shared; empty if it can, or if sharing is off.
  const std::string& trouble() const { return trouble_; }

 private:
  int parts_;
  std::optional<SharedFolder> folder_;
  std::string trouble_;
};

/// Sets the options of open_data() about other processes on this machine: those of this training,
/// as the launcher says, and other trainings. Throws UsageError if the variables of DataSharing are
/// invalid.
void set_sharing(data::OpenOptions& options);

}  // namespace gallop::app

#pragma once

#include <map>
#include <optional>
#include <string>

#include "gallop/base/shared_folder.h"

namespace gallop::data {
struct OpenOptions;
}

namespace gallop::app {

/// Lets trainings that this process starts on this machine share what they read and decode, as long
/// as it lives. They are told by variables of their environment where (GALLOP_SHARED_DATA), and how
/// many of them share the machine's memory (GALLOP_MEMORY_PARTS). Where the first is set already,
/// what it says holds for them, too; where it is empty nothing is shared.
class DataSharing {
 public:
  /// `trainings` run at a time.
  explicit DataSharing(int trainings);

  std::map<std::string, std::string> variables() const;
  /// Why nothing can be shared; empty where it can, or where that is not wanted.
  const std::string& trouble() const { return trouble_; }

 private:
  int parts_;
  std::optional<SharedFolder> folder_;
  std::string trouble_;
};

/// Sets what open_data() needs to know of the other processes on this machine: of this training, as
/// the starter says, and of trainings beside it. Throws UsageError where the variables of
/// DataSharing cannot be.
void set_sharing(data::OpenOptions& options);

}  // namespace gallop::app

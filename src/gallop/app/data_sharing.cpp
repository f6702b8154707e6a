#include "gallop/app/data_sharing.h"

#include <fmt/format.h>

#include "gallop/app/run_handoff.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/left_over.h"
#include "gallop/base/text.h"
#include "gallop/compile/codegen/kernel_cache.h"
#include "gallop/data/data_module.h"
#include "gallop/data/shared_data.h"
#include "gallop/launch/group.h"
#include "gallop/launch/world.h"

namespace gallop::app {

namespace {

constexpr const char* kFolderVariable = "GALLOP_SHARED_DATA";
constexpr const char* kPartsVariable = "GALLOP_MEMORY_PARTS";
constexpr int kMostParts = 1 << 16;
// Shared data may take a quarter of the memory.
constexpr int64_t kShareOfMemory = 4;

int given_memory_parts() {
  const auto text = launch::process_environment()(kPartsVariable);
  if (!text) return 1;
  const auto parts = parse_number<int>(*text);
  if (parts && *parts >= 1 && *parts <= kMostParts) return *parts;
  throw UsageError(
      fmt::format("the environment variable {} is '{}', but must be a number from 1 "
                  "to {}: of trainings that share this machine's memory",
                  kPartsVariable, printable(*text), kMostParts));
}

// Left-overs of killed launchers and trainings. Processes that create such folders do this
// themselves.
void remove_left_temporary_folders() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) return;
  for (const char* const prefix :
       {RunHandoff::kFolderPrefix, launch::kCallLogsPrefix, compile::kNewFolderElsewhere}) {
    remove_left_folders(place, prefix);
  }
}

}  // namespace

DataSharing::DataSharing(int trainings) : parts_(given_memory_parts() * trainings) {
  if (launch::process_environment()(kFolderVariable)) return;
  try {
    folder_.emplace(SharedFolder::usual_places(), read_hardware().memory_bytes / kShareOfMemory);
  } catch (const DeviceError& error) {
    trouble_ = error.what();
  }
}

std::map<std::string, std::string> DataSharing::variables() const {
  std::map<std::string, std::string> variables{{kPartsVariable, std::to_string(parts_)}};
  if (folder_) variables.emplace(kFolderVariable, folder_->path().string());
  return variables;
}

void set_sharing(data::OpenOptions& options) {
  const launch::Environment environment = launch::process_environment();
  const int processes = launch::read_world(environment).local_size;
  options.memory_parts = given_memory_parts() * processes;
  const auto folder = environment(kFolderVariable);
  if (folder) {
    if (!folder->empty()) options.shared = std::make_shared<data::SharedData>(fs::path(*folder));
  } else if (processes > 1) {
    // Started by a launcher other than Gallop.
    options.shared = std::make_shared<data::SharedData>(SharedFolder::usual_places(),
                                                        options.memory_bytes / kShareOfMemory);
  } else {
    SharedFolder::remove_left(SharedFolder::usual_places());
    remove_left_temporary_folders();
  }
}

}  // namespace gallop::app

#pragma once

#include <functional>
#include <map>
#include <string>

#include "gallop/base/file.h"

namespace gallop::track {

/// What people say of a run: labels.json in its folder.
struct Labels {
  std::map<std::string, std::string> tags;
  std::string note;
};

/// None where there is no such file. Throws DataError where it is damaged.
Labels read_labels(const fs::path& folder);

/// Throws DeviceError.
void write_labels(const fs::path& folder, const Labels& labels);

/// Reads, changes and writes them. Of several that do so at once, also in other processes, none
/// undoes what another has done. Throws as both do.
void change_labels(const fs::path& folder, const std::function<void(Labels&)>& change);

/// "key=value" as a pair, a word alone with an empty value. Throws UsageError where the key is
/// empty or longer than 250 bytes.
std::pair<std::string, std::string> parse_tag(const std::string& text);

}  // namespace gallop::track

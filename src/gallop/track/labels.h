#pragma once

#include <functional>
#include <map>
#include <string>

#include "gallop/base/file.h"

namespace gallop::track {

/// The user's labels of a run: labels.json in its folder.
struct Labels {
  std::map<std::string, std::string> tags;
  std::string note;
};

/// Empty if there is no such file. Throws DataError if it is damaged.
Labels read_labels(const fs::path& folder);

/// Writes the labels. Throws DeviceError.
void write_labels(const fs::path& folder, const Labels& labels);

/// Atomic read-modify-write of labels: concurrent changes, also by other processes, are all kept.
/// Throws the errors of both.
void change_labels(const fs::path& folder, const std::function<void(Labels&)>& change);

/// Parses "key=value", or a word as a key with an empty value. Throws UsageError if the key is
/// empty or longer than 250 bytes.
std::pair<std::string, std::string> parse_tag(const std::string& text);

}  // namespace gallop::track

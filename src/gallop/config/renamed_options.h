#pragma once

#include <string>
#include <vector>

#include "gallop/config/node.h"

namespace gallop::config {

/// An option, section or family member that was renamed. Recipes, overrides, search spaces and
/// stored runs may still use the old name. `parent` is the path of its map or list, with '*' for
/// list indices.
struct RenamedOption {
  const char* parent;
  const char* old_name;
  const char* name;
};

/// All renamed options. Remove an entry one version after it was added.
const std::vector<RenamedOption>& renamed_options();

/// The path with current names: "vary.momentum.to" becomes "schedules.momentum.to".
std::string current_path(const std::string& path);

/// An occurrence of an old name.
struct OldName {
  Origin origin;
  std::string path;          ///< As written.
  std::string current_path;  ///< With current names.

  /// "r.yaml:3:7: data.batch is deprecated; write data.batch_size".
  std::string describe() const;
};

/// Records that an option is given by both its old and its current name.
void add_has_both(const OldName& one, Problems& problems);

/// Renames the old names in a recipe, and returns where they were used. An option with both names
/// is a problem.
std::vector<OldName> rename_old_options(Node& root, Problems& problems);

}  // namespace gallop::config

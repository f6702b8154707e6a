#pragma once

#include <string>
#include <vector>

#include "gallop/config/node.h"

namespace gallop::config {

/// An option, a section or a member of a family that had another name in an earlier version.
/// Recipes, overrides, search spaces and stored runs may still use that name. `parent` is the path
/// of the map or list that it is in, where '*' stands for the number of an item.
struct RenamedOption {
  const char* parent;
  const char* old_name;
  const char* name;
};

/// All renamed options. Remove an entry one version after it was added.
const std::vector<RenamedOption>& renamed_options();

/// The path with current names: "vary.momentum.to" becomes "schedules.momentum.to".
std::string current_path(const std::string& path);

/// A place where an old name is used.
struct OldName {
  Origin origin;
  std::string path;          ///< As written.
  std::string current_path;  ///< As it is written today.

  /// "r.yaml:3:7: data.batch is deprecated; write data.batch_size".
  std::string describe() const;
};

/// Records that an option is given by its old and by its current name.
void add_has_both(const OldName& one, Problems& problems);

/// Gives the keys and list items of a recipe their current names, and returns where old ones were.
/// An option that has both names is a problem.
std::vector<OldName> rename_old_options(Node& root, Problems& problems);

}  // namespace gallop::config

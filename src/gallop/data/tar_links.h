#pragma once

#include <string>
#include <vector>

#include "gallop/data/tar_format.h"

namespace gallop::data {

/// A file of an archive, reached directly or through links.
struct TarEntry {
  TarMember member;     ///< For a link, its name with the position of its target.
  std::string problem;  ///< Why it has no content; empty if it has content.
  bool through_link = false;
  size_t order = 0;  ///< Position of the member in the archive.
};

/// Resolves the files of an archive by following links within it, including links to other links,
/// to later members, and to folders, whose files then get additional names. `problem` is set for
/// dangling and circular links, links out of the archive, and members that are not files. Throws
/// DataError if links to folders expand to more than `max_linked` files.
std::vector<TarEntry> follow_links(std::vector<TarMember> members, const std::string& archive,
                                   size_t max_linked = 2'000'000);

}  // namespace gallop::data

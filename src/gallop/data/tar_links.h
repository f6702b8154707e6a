#pragma once

#include <string>
#include <vector>

#include "gallop/data/tar_format.h"

namespace gallop::data {

/// A member behind whose name stands the content of a file, directly or through links.
struct TarEntry {
  TarMember member;     ///< Of a link: its name with the place of what it leads to.
  std::string problem;  ///< Why there is no such content; empty where there is.
  bool through_link = false;
  size_t order = 0;  ///< Of the member in the archive.
};

/// The files of an archive with its links followed inside it, also through other links, to members
/// that come later, and to folders, whose files then have names of their own. What leads nowhere,
/// round in a circle or out of the archive has its problem, and so has what cannot be read as a
/// file. Throws DataError where links to folders stand for more than `max_linked` files.
std::vector<TarEntry> follow_links(std::vector<TarMember> members, const std::string& archive,
                                   size_t max_linked = 2'000'000);

}  // namespace gallop::data

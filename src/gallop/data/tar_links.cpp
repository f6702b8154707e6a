#include "gallop/data/tar_links.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr int kMaxHops = 40;  // The limit of Linux.

bool is_link(const TarMember& member) {
  return member.kind == TarKind::kHardLink || member.kind == TarKind::kSymbolicLink;
}

// The end of a path walk: a member, a folder, or a problem.
struct Destination {
  const TarMember* member = nullptr;
  std::string folder;
  std::string problem;
};

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

// Normalizes a path: removes "." components and leading, trailing and repeated slashes.
std::string normal(std::string_view name) {
  std::string path;
  while (!name.empty()) {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, slash);
    name.remove_prefix(std::min(slash + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

class LinkFollower {
 public:
  LinkFollower(const std::vector<TarMember>& members, const std::string& archive, size_t max_linked)
      : members_(members), archive_(archive), max_linked_(max_linked) {
    for (size_t i = 0; i < members.size(); ++i) {
      paths_.push_back(normal(members[i].name));
      if (members[i].kind == TarKind::kFolder) {
        folders_.insert(paths_.back());
      } else {
        places_[paths_.back()] = i;
      }
      for (std::string above = parent_of(paths_.back());
           !above.empty() && folders_.insert(above).second;) {
        above = parent_of(above);
      }
    }
  }

  void follow(size_t at, std::vector<TarEntry>& out) {
    const Destination end = walk(paths_[at]);
    if (end.member == nullptr && end.problem.empty()) return expand(at, end.folder, out);
    out.push_back(entry(members_[at].name, at, end));
  }

 private:
  static TarEntry entry(std::string name, size_t order, const Destination& end) {
    TarEntry entry{.member = {.name = std::move(name)},
                   .problem = end.problem,
                   .through_link = true,
                   .order = order};
    if (end.member != nullptr) {
      entry.member.offset = end.member->offset;
      entry.member.size = end.member->size;
    }
    return entry;
  }

  // Resolves a path like the kernel: component by component, replacing each link by its target.
  Destination walk(std::string rest) const {
    std::string base;
    int hops = 0;
    while (!rest.empty()) {
      const size_t slash = std::min(rest.find('/'), rest.size());
      const std::string part = rest.substr(0, slash);
      rest.erase(0, std::min(slash + 1, rest.size()));
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        if (base.empty()) return {.problem = "is a link that leads out of the archive"};
        base = parent_of(base);
        continue;
      }
      std::string next = base.empty() ? part : fmt::format("{}/{}", base, part);
      const auto found = places_.find(next);
      if (found == places_.end() || !is_link(members_[found->second])) {
        base = std::move(next);
        continue;
      }
      const TarMember& link = members_[found->second];
      if (++hops > kMaxHops) return {.problem = "is a link that leads back to itself"};
      if (link.kind == TarKind::kHardLink) {
        base.clear();
      } else if (link.link.starts_with('/')) {
        return {.problem = fmt::format("is a link that leads out of the archive, to '{}'",
                                       printable(link.link))};
      }
      rest = rest.empty() ? link.link : fmt::format("{}/{}", link.link, rest);
    }
    return arrive(base);
  }

  Destination arrive(const std::string& path) const {
    const auto found = places_.find(path);
    if (found == places_.end()) {
      if (path.empty() || folders_.contains(path)) return {.folder = path};
      return {.problem =
                  fmt::format("is a link to '{}', which is not in the archive", printable(path))};
    }
    const TarMember& member = members_[found->second];
    if (member.kind == TarKind::kFile) return {.member = &member};
    return {.problem =
                fmt::format("is a link to '{}', which is not a plain file", printable(path))};
  }

  // Adds the files of a folder under the name of a link to it.
  void expand(size_t at, const std::string& folder, std::vector<TarEntry>& out) {
    const std::string& link = paths_[at];
    const std::string inside = folder.empty() ? std::string() : folder + "/";
    const bool is_hard = members_[at].kind == TarKind::kHardLink;
    if (is_hard || (link + "/").starts_with(inside)) {
      const char* problem =
          is_hard ? "is a hard link to a folder" : "is a link to a folder that it lies in";
      out.push_back(entry(members_[at].name, at, {.problem = problem}));
      return;
    }
    sort_paths();
    std::vector<size_t> files;
    const auto first = std::lower_bound(
        sorted_.begin(), sorted_.end(), inside,
        [this](size_t i, const std::string& prefix) { return paths_[i] < prefix; });
    for (auto i = first; i != sorted_.end() && paths_[*i].starts_with(inside); ++i) {
      if (members_[*i].kind != TarKind::kFolder) files.push_back(*i);
    }
    linked_ += files.size();
    if (linked_ > max_linked_) {
      throw DataError(fmt::format("{}: links to folders stand for more than {} files",
                                  printable(archive_),
                                  format_count(static_cast<int64_t>(max_linked_))));
    }
    std::sort(files.begin(), files.end());
    for (const size_t file : files) {
      Destination end = walk(paths_[file]);
      if (end.member == nullptr && end.problem.empty()) {
        end.problem = "is a link to a folder inside a linked folder, which is not followed";
      }
      out.push_back(entry(link + "/" + paths_[file].substr(inside.size()), at, end));
    }
  }

  void sort_paths() {
    if (!sorted_.empty()) return;
    for (size_t i = 0; i < paths_.size(); ++i) sorted_.push_back(i);
    std::sort(sorted_.begin(), sorted_.end(),
              [this](size_t a, size_t b) { return paths_[a] < paths_[b]; });
  }

  const std::vector<TarMember>& members_;
  const std::string& archive_;
  size_t max_linked_;
  std::vector<std::string> paths_;
  std::unordered_map<std::string, size_t> places_;
  std::unordered_set<std::string> folders_;
  std::vector<size_t> sorted_;
  size_t linked_ = 0;
};

std::string problem_of(TarKind kind) {
  if (kind == TarKind::kSparse) return "is stored with holes; pack it again without --sparse";
  if (kind == TarKind::kOther) return "is neither a file nor a link";
  return {};
}

}  // namespace

std::vector<TarEntry> follow_links(std::vector<TarMember> members, const std::string& archive,
                                   size_t max_linked) {
  std::vector<TarEntry> entries;
  if (std::none_of(members.begin(), members.end(), is_link)) {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].kind == TarKind::kFolder) continue;
      const TarKind kind = members[i].kind;
      entries.push_back({.member = std::move(members[i]), .problem = problem_of(kind), .order = i});
    }
    return entries;
  }
  LinkFollower follower(members, archive, max_linked);
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].kind == TarKind::kFolder) continue;
    if (is_link(members[i])) {
      follower.follow(i, entries);
    } else {
      entries.push_back({.member = members[i], .problem = problem_of(members[i].kind), .order = i});
    }
  }
  return entries;
}

}  // namespace gallop::data

#include "gallop/data/folder_listing.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/text.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/ignored_names.h"

namespace gallop::data {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// The type of an entry, following links. Calls stat() if the file system does not report types in
// directory entries. Returns 0 with errno set if that fails.
mode_t type_of(const dirent& entry, int folder) {
  if (entry.d_type == DT_REG) return S_IFREG;
  if (entry.d_type == DT_DIR) return S_IFDIR;
  struct stat info = {};
  return fstatat(folder, entry.d_name, &info, 0) == 0 ? info.st_mode & S_IFMT : 0;
}

void sort_in(const dirent& entry, int folder, const fs::path& path, FolderListing& listing) {
  const std::string name = entry.d_name;
  if (name == "." || name == "..") return;
  if (is_ignored_name(name)) {
    listing.hidden.push_back(name);
    return;
  }
  const mode_t type = type_of(entry, folder);
  const int error = type == 0 ? errno : 0;
  check_machine_error(path / name, "open", error);
  // A dangling link without an extension may stand for a class folder.
  const bool is_lost_folder = type == 0 && name.find('.') == std::string::npos;
  if (type == S_IFDIR) {
    listing.folders.push_back(name);
  } else if (has_image_ending(name) || is_lost_folder) {
    if (type == S_IFREG) {
      listing.images.push_back(name);
    } else {
      listing.unusable.push_back({name, "file that cannot be opened",
                                  type == 0 ? "cannot open: " + reason(error) : "is not a file"});
    }
  } else if (is_unread_image(name)) {
    listing.unusable.push_back({name, "image of another format",
                                "is of a format that is not read; convert it to .png or .jpg"});
  } else {
    listing.others.push_back(name);
  }
}

}  // namespace

FolderListing list_folder(const fs::path& path) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (!folder) throw_read_error(path, "open", errno);
  FolderListing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    sort_in(*entry, dirfd(folder.get()), path, listing);
  }
  if (errno != 0) throw_read_error(path, "read", errno);
  for (auto* list : {&listing.folders, &listing.images, &listing.others, &listing.hidden}) {
    std::sort(list->begin(), list->end());
  }
  std::sort(listing.unusable.begin(), listing.unusable.end(),
            [](const UnusableImage& a, const UnusableImage& b) { return a.name < b.name; });
  return listing;
}

int64_t count_ignored_images(const fs::path& path) {
  constexpr int kMaxEntries = 10'000;
  std::error_code error;
  if (!fs::is_directory(path, error)) return has_image_ending(path.filename().string()) ? 1 : 0;
  int64_t images = 0;
  int seen = 0;
  for (fs::recursive_directory_iterator at(path, error), end;
       !error && at != end && seen < kMaxEntries; at.increment(error), ++seen) {
    images += has_image_ending(at->path().filename().string()) ? 1 : 0;
  }
  return images;
}

}  // namespace gallop::data

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/folder_images.h"
#include "gallop/data/folder_listing.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/ignored_names.h"
#include "gallop/data/parallel.h"
#include "gallop/data/part.h"
#include "gallop/data/readers.h"
#include "gallop/data/skip_summary.h"

namespace gallop::data {

namespace {

// Collects the ignored files, for one note of each kind.
class Ignored {
 public:
  explicit Ignored(fs::path path) : path_(std::move(path)) {}

  void add(const std::string& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (examples_.size() < 3) examples_.push_back(printable(folder + name));
    }
    count_ += static_cast<int64_t>(names.size());
  }

  // Records the ignored names that contain images.
  void add_hidden(const std::string& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const int64_t images = count_ignored_images(path_ / (folder + name));
      if (hidden_images_ == 0 && images > 0) first_hidden_ = printable(folder + name);
      hidden_images_ += images;
    }
  }

  void note(std::vector<std::string>& notes) const {
    const std::string place = printable(path_.string());
    if (count_ > 0) {
      notes.push_back(fmt::format("{}: {} other {} ignored, such as {}", place,
                                  format_count(count_), count_ == 1 ? "entry" : "entries",
                                  join_names(examples_, "and")));
    }
    if (hidden_images_ > 0) {
      notes.push_back(hidden_images_note(place, hidden_images_, first_hidden_));
    }
  }

 private:
  fs::path path_;
  int64_t count_ = 0, hidden_images_ = 0;
  std::vector<std::string> examples_;
  std::string first_hidden_;
};

std::vector<std::string> without(const std::vector<std::string>& all,
                                 const std::vector<std::string>& taken) {
  std::vector<std::string> rest;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::back_inserter(rest));
  for (std::string& name : rest) name = printable(name);
  if (rest.size() > 5) rest = {rest[0], rest[1], rest[2], fmt::format("{} more", rest.size() - 3)};
  return rest;
}

void check_same_classes(const fs::path& path, const std::vector<std::string>& found,
                        const std::vector<std::string>& classes) {
  const auto missing = without(classes, found), unknown = without(found, classes);
  if (missing.empty() && unknown.empty()) return;
  std::string message = printable(path.string()) + ": the classes differ from those of train:";
  if (!missing.empty()) message += " missing " + join_names(missing, "and");
  if (!missing.empty() && !unknown.empty()) message += ";";
  if (!unknown.empty()) message += " not known in train " + join_names(unknown, "and");
  throw DataError(message);
}

// A folder of a class: its own or one inside of it.
struct ClassFolder {
  std::string name;  // "cat/side"
  FolderListing listing;
  std::string error;  // Why it cannot be listed.
};
using ClassFolders = std::vector<ClassFolder>;

struct FolderId {
  dev_t device;
  ino_t inode;
  bool operator==(const FolderId&) const = default;
};

// `above`: the folders that contain this one, to end at links that lead back to them.
void list_tree(const fs::path& path, const std::string& name, std::vector<FolderId>& above,
               ClassFolders& folders) {
  ClassFolder& folder = folders.emplace_back(ClassFolder{.name = name, .listing = {}, .error = {}});
  struct stat info = {};
  const FolderId id =
      stat((path / name).c_str(), &info) == 0 ? FolderId{info.st_dev, info.st_ino} : FolderId{};
  if (std::find(above.begin(), above.end(), id) != above.end()) {
    folder.error = fmt::format("{}: is a link to a folder that contains it",
                               printable((path / name).string()));
    return;
  }
  try {
    folder.listing = list_folder(path / name);
  } catch (const DataError& error) {
    folder.error = error.what();
    return;
  }
  above.push_back(id);
  const std::vector<std::string> inner = folder.listing.folders;
  for (const std::string& one : inner) {
    list_tree(path, fmt::format("{}/{}", name, one), above, folders);
  }
  above.pop_back();
}

// All folders of a class in the order of torchvision's ImageFolder.
ClassFolders list_class(const fs::path& path, const std::string& name) {
  ClassFolders folders;
  std::vector<FolderId> above;
  list_tree(path, name, above, folders);
  std::sort(folders.begin(), folders.end(),
            [](const ClassFolder& a, const ClassFolder& b) { return a.name < b.name; });
  return folders;
}

bool has_images(const ClassFolders& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [](const ClassFolder& folder) { return !folder.listing.images.empty(); });
}

// Throws DataError if the folders seem to be one level above the classes or the splits.
void refuse_ambiguous_folders(const fs::path& path, const std::vector<ClassFolders>& classes,
                              bool has_part_folders) {
  for (const ClassFolders& folders : classes) {
    const std::string& name = folders.front().name;
    for (const std::string& inner : folders.front().listing.folders) {
      if (has_part_folders || part_of_word(inner) != Part::kTrain) continue;
      throw DataError(fmt::format(
          "{0}: has a folder '{1}', but is itself taken as a class; set data.path to {0} if it has "
          "the splits, or rename '{1}'",
          printable((path / name).string()), printable(inner)));
    }
  }
  if (classes.size() != 1 || !has_images(classes[0])) return;
  const ClassFolder& only = classes[0].front();
  if (!only.listing.images.empty()) return;
  throw DataError(
      fmt::format("{}: the only class, with all images in folders inside of it ({}); the folders "
                  "of the classes are expected in {}",
                  printable((path / only.name).string()),
                  join_names(without(only.listing.folders, {}), "and"), printable(path.string())));
}

// Reads the splits one after the other; the training split comes first and defines the classes.
class FolderReader {
 public:
  FolderReader(const ReadContext& context, ImageParts& parts)
      : context_(context), parts_(parts), skips_(context.skip_broken) {}

  /// `has_part_folders`: not the classes alone, but a folder "train" with them was found.
  std::unique_ptr<ImageSet> read_part(const fs::path& path, bool has_part_folders) {
    const FolderListing top = list_folder(path);
    if (top.folders.empty()) {
      throw DataError(
          fmt::format("{}: no class folders in it; images are expected as CLASS/NAME.jpg",
                      printable(path.string())));
    }
    const bool is_first = classes_.empty();
    if (is_first) classes_ = top.folders;
    if (!is_first && !skips_.skips()) check_same_classes(path, top.folders, classes_);
    std::vector<ClassFolders> classes(top.folders.size());
    run_parallel(context_.threads, static_cast<int64_t>(classes.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      classes[at] = list_class(path, top.folders[at]);
    });
    if (is_first) refuse_ambiguous_folders(path, classes, has_part_folders);
    Ignored ignored(path);
    ignored.add("", top.others);
    ignored.add_hidden("", top.hidden);
    skip_unusable(path, top);
    for (const std::string& name : top.images) {
      skip("image outside of class folders", path / name, "is not in a class folder");
    }
    auto images = std::make_unique<FolderImages>(path, classes_, context_.orient);
    std::vector<std::string> empty;
    for (size_t i = 0; i < classes.size(); ++i) {
      add_class(path, top.folders[i], classes[i], *images, ignored);
      if (has_images(classes[i]) || !classes[i].front().error.empty()) continue;
      empty.push_back(top.folders[i]);
      if (skips_.skips()) continue;
      throw DataError(fmt::format(
          "{}: a class without images ({}); remove the folder, or keep the class of the model "
          "without images with data.on_error=skip",
          printable((path / top.folders[i]).string()), image_endings()));
    }
    ignored.note(parts_.notes);
    if (images->size() == 0) {
      throw DataError(fmt::format("{}: no images that can be used{}", printable(path.string()),
                                  skip_summary(skips_)));
    }
    if (!empty.empty()) {
      parts_.notes.push_back(fmt::format(
          "{}: {} {} without images, kept in the model: {}", printable(path.string()), empty.size(),
          empty.size() == 1 ? "class" : "classes", join_names(without(empty, {}), "and")));
    }
    return images;
  }

  // Reads a test split without class folders; returns false if it has class folders.
  bool read_flat(const fs::path& path) {
    const FolderListing top = list_folder(path);
    if (!top.folders.empty() || top.images.empty()) return false;
    auto images =
        std::make_unique<FolderImages>(path, std::vector<std::string>{"unknown"}, context_.orient);
    for (const std::string& name : top.images) images->add(name, 0);
    skip_unusable(path, top);
    Ignored ignored(path);
    ignored.add("", top.others);
    ignored.add_hidden("", top.hidden);
    ignored.note(parts_.notes);
    parts_.notes.push_back(unlabeled_test_note(printable(path.string()), images->size()));
    parts_.unlabeled_test = std::move(images);
    return true;
  }

  const std::vector<SkipCount>& skipped() const { return skips_.counts(); }

 private:
  void add_class(const fs::path& path, const std::string& name, const ClassFolders& folders,
                 FolderImages& images, Ignored& ignored) {
    for (const ClassFolder& folder : folders) {
      if (!folder.error.empty()) {
        skips_.add("folder that cannot be read", folder.error);
        continue;
      }
      add_images(path, name, folder, images);
      ignored.add(folder.name + "/", folder.listing.others);
      ignored.add_hidden(folder.name + "/", folder.listing.hidden);
    }
  }

  void add_images(const fs::path& path, const std::string& class_name, const ClassFolder& folder,
                  FolderImages& images) {
    skip_unusable(path / folder.name, folder.listing);
    const auto found = std::lower_bound(classes_.begin(), classes_.end(), class_name);
    const bool is_known = found != classes_.end() && *found == class_name;
    for (const std::string& file : folder.listing.images) {
      if (is_known) {
        images.add(fmt::format("{}/{}", folder.name, file),
                   static_cast<int32_t>(found - classes_.begin()));
      } else {
        skip("unknown class", path / folder.name / file, "its class is not known in train");
      }
    }
  }

  void skip_unusable(const fs::path& path, const FolderListing& listing) {
    for (const UnusableImage& one : listing.unusable)
      skip(one.reason, path / one.name, one.problem);
  }

  void skip(const char* kind, const fs::path& path, const std::string& problem) {
    skips_.add(kind, fmt::format("{}: {}", printable(path.string()), problem));
  }

  const ReadContext& context_;
  ImageParts& parts_;
  SkipPolicy skips_;
  std::vector<std::string> classes_;
};

// The folders of the splits, or the folder itself as training split if there are none.
std::array<fs::path, kParts> part_folders(const fs::path& root, std::vector<std::string>& notes) {
  std::array<fs::path, kParts> folders;
  const FolderListing top = list_folder(root);
  Ignored ignored(root);
  ignored.add("", top.images);
  ignored.add_hidden("", top.hidden);
  for (const std::string& name : top.folders) {
    const auto part = part_of_word(name);
    if (!part) {
      ignored.add("", {name});
      continue;
    }
    fs::path& folder = folders[static_cast<size_t>(*part)];
    if (!folder.empty()) {
      throw DataError(fmt::format("{}: {} and {} both name the {} split; keep one of them",
                                  printable(root.string()), folder.filename().string(), name,
                                  kPartNames[static_cast<size_t>(*part)]));
    }
    folder = root / name;
  }
  // Without a folder "train", the others are classes that happen to have such names.
  if (folders[0].empty()) return {root, {}, {}};
  ignored.note(notes);
  return folders;
}

}  // namespace

void visit(config::Visitor&, FolderConfig&) {}

std::unique_ptr<ImageParts> read_folder(const FolderConfig&, const ReadContext& context) {
  const fs::path root = find_user_data("folder", context.path);
  auto parts = std::make_unique<ImageParts>();
  const std::array<std::unique_ptr<ImageSet>*, kParts> sets{&parts->train, &parts->validation,
                                                            &parts->test};
  const auto folders = part_folders(root, parts->notes);
  FolderReader reader(context, *parts);
  for (size_t i = 0; i < kParts; ++i) {
    if (folders[i].empty()) continue;
    const bool is_test = static_cast<Part>(i) == Part::kTest;
    if (is_test && reader.read_flat(folders[i])) continue;
    *sets[i] = reader.read_part(folders[i], folders[0] != root);
    parts->files.push_back(folders[i].string());
  }
  parts->skipped = reader.skipped();
  return parts;
}

}  // namespace gallop::data

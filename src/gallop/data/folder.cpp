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

// Reads the splits one after the other; the training split comes first and defines the classes.
class FolderReader {
 public:
  FolderReader(const ReadContext& context, ImageParts& parts)
      : context_(context), parts_(parts), skips_(context.skip_broken) {}

  std::unique_ptr<ImageSet> read_part(const fs::path& path) {
    const FolderListing top = list_folder(path);
    if (top.folders.empty()) {
      throw DataError(
          fmt::format("{}: no class folders in it; images are expected as CLASS/NAME.jpg",
                      printable(path.string())));
    }
    const bool is_first = classes_.empty();
    if (is_first) classes_ = top.folders;
    if (!is_first && !skips_.skips()) check_same_classes(path, top.folders, classes_);
    std::vector<FolderListing> listings(top.folders.size());
    std::vector<std::string> errors(top.folders.size());
    run_parallel(context_.threads, static_cast<int64_t>(listings.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      try {
        listings[at] = list_folder(path / top.folders[at]);
      } catch (const DataError& error) {
        errors[at] = error.what();
      }
    });
    Ignored ignored(path);
    ignored.add("", top.others);
    ignored.add_hidden("", top.hidden);
    skip_unusable(path, top);
    for (const std::string& name : top.images) {
      skip("image outside of class folders", path / name, "is not in a class folder");
    }
    auto images = std::make_unique<FolderImages>(path, classes_, context_.orient);
    for (size_t i = 0; i < listings.size(); ++i) {
      if (!errors[i].empty()) {
        skips_.add("folder that cannot be read", errors[i]);
        continue;
      }
      add_class(path, top.folders[i], listings[i], *images);
      ignored.add(top.folders[i] + "/", listings[i].folders);
      ignored.add(top.folders[i] + "/", listings[i].others);
      ignored.add_hidden(top.folders[i] + "/", listings[i].hidden);
    }
    ignored.note(parts_.notes);
    if (images->size() > 0) return images;
    throw DataError(fmt::format("{}: no images that can be used", printable(path.string())));
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
  void add_class(const fs::path& path, const std::string& name, const FolderListing& listing,
                 FolderImages& images) {
    skip_unusable(path / name, listing);
    const auto found = std::lower_bound(classes_.begin(), classes_.end(), name);
    const bool is_known = found != classes_.end() && *found == name;
    for (const std::string& file : listing.images) {
      if (is_known) {
        images.add(fmt::format("{}/{}", name, file),
                   static_cast<int32_t>(found - classes_.begin()));
      } else {
        skip("unknown class", path / name / file, "its class is not known in train");
      }
    }
    if (listing.images.empty()) {
      skip("class without images", path / name,
           fmt::format("a class without images ({})", image_endings()));
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
    *sets[i] = reader.read_part(folders[i]);
    parts->files.push_back(folders[i].string());
  }
  parts->skipped = reader.skipped();
  return parts;
}

}  // namespace gallop::data

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"
#include "gallop/data/parallel.h"
#include "gallop/data/part.h"
#include "gallop/data/readers.h"

namespace gallop::data {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

// What one folder holds, hidden entries left out; each list is sorted.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::vector<std::string> others;
};

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// File systems that do not tell an entry's type with its name are asked; links are followed.
mode_t type_of(const dirent& entry, int folder) {
  if (entry.d_type == DT_REG) return S_IFREG;
  if (entry.d_type == DT_DIR) return S_IFDIR;
  struct stat info = {};
  return fstatat(folder, entry.d_name, &info, 0) == 0 ? info.st_mode & S_IFMT : 0;
}

Listing list_folder(const fs::path& path) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (!folder) {
    throw DataError(fmt::format("{}: cannot open: {}", printable(path.string()), reason(errno)));
  }
  Listing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    const mode_t type = type_of(*entry, dirfd(folder.get()));
    const bool is_image = type == S_IFREG && has_image_ending(entry->d_name);
    auto& list = type == S_IFDIR ? listing.folders : is_image ? listing.images : listing.others;
    list.emplace_back(entry->d_name);
  }
  if (errno != 0) {
    throw DataError(fmt::format("{}: cannot read: {}", printable(path.string()), reason(errno)));
  }
  for (auto* list : {&listing.folders, &listing.images, &listing.others}) {
    std::sort(list->begin(), list->end());
  }
  return listing;
}

// The images of one part. Files are opened relative to its folder, which spares the system the walk
// along the whole path for each of them.
class FolderImages final : public ImageSet {
 public:
  FolderImages(fs::path path, std::vector<std::string> class_names)
      : path_(std::move(path)),
        folder_(open_for_reading(path_)),
        class_names_(std::move(class_names)) {}

  void add(int32_t label, const std::string& file) {
    starts_.push_back(names_.size());
    names_ += class_names_[static_cast<size_t>(label)];
    names_ += '/';
    names_ += file;
    names_ += '\0';
    labels_.push_back(label);
  }

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string describe(int64_t index) const override {
    return printable((path_ / name(index)).string());
  }

  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    try {
      ThreadDecoder& own = thread_decoder();
      const FileDescriptor file(openat(folder_.get(), name(index), O_RDONLY | O_CLOEXEC));
      if (!file) throw DataError("cannot open: " + reason(errno));
      own.decoder.decode(read_image_file(file, own.file), request, image);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", describe(index), error.what()));
    }
  }

  std::string identity() const override {
    return fmt::format("folder {}\n{}", fs::absolute(path_).string(), xxh3_128(names_));
  }
  uint64_t stamp(int64_t index) const override {
    struct stat info = {};
    // Of one that is not there nothing will be kept.
    if (fstatat(folder_.get(), name(index), &info, 0) != 0) return 0;
    return xxh3_64(file_state(info));
  }

 private:
  const char* name(int64_t index) const {
    return names_.data() + starts_[static_cast<size_t>(index)];
  }

  fs::path path_;
  FileDescriptor folder_;
  std::vector<std::string> class_names_;
  std::string names_;  // "CLASS/FILE", each ended by a zero.
  std::vector<size_t> starts_;
  std::vector<int32_t> labels_;
};

// Collects what was passed over, for one note.
class Ignored {
 public:
  void add(const std::string& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (examples_.size() < 3) examples_.push_back(printable(folder + name));
    }
    count_ += static_cast<int64_t>(names.size());
  }
  void note(const fs::path& path, std::vector<std::string>& notes) const {
    if (count_ == 0) return;
    notes.push_back(fmt::format("{}: {} other {} ignored, such as {}", printable(path.string()),
                                format_count(count_), count_ == 1 ? "entry" : "entries",
                                join_names(examples_, "and")));
  }

 private:
  int64_t count_ = 0;
  std::vector<std::string> examples_;
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

// `classes` is empty for the part that decides which classes there are.
std::unique_ptr<ImageSet> read_part(const fs::path& path, const std::vector<std::string>& classes,
                                    int threads, std::vector<std::string>& notes) {
  Listing top = list_folder(path);
  if (top.folders.empty()) {
    throw DataError(fmt::format(
        "{}: no class folders in it; images are expected as CLASS/NAME.jpg (or .jpeg, .png)",
        printable(path.string())));
  }
  if (!classes.empty()) check_same_classes(path, top.folders, classes);
  std::vector<Listing> listings(top.folders.size());
  run_parallel(threads, static_cast<int64_t>(listings.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    listings[at] = list_folder(path / top.folders[at]);
    if (listings[at].images.empty()) {
      throw DataError(fmt::format("{}: a class without images (.jpg, .jpeg or .png)",
                                  printable((path / top.folders[at]).string())));
    }
  });
  Ignored ignored;
  ignored.add("", top.images);
  ignored.add("", top.others);
  auto images = std::make_unique<FolderImages>(path, top.folders);
  for (size_t label = 0; label < listings.size(); ++label) {
    for (const std::string& file : listings[label].images) {
      images->add(static_cast<int32_t>(label), file);
    }
    ignored.add(top.folders[label] + "/", listings[label].folders);
    ignored.add(top.folders[label] + "/", listings[label].others);
  }
  ignored.note(path, notes);
  return images;
}

// The folders of the parts, or the folder itself as training part where it has no such folders.
std::array<fs::path, kParts> part_folders(const fs::path& root) {
  std::array<fs::path, kParts> folders;
  for (const std::string& name : list_folder(root).folders) {
    const auto part = part_of_word(name);
    if (!part) continue;
    fs::path& folder = folders[static_cast<size_t>(*part)];
    if (!folder.empty()) {
      throw DataError(fmt::format("{}: {} and {} both name the {} part; keep one of them",
                                  printable(root.string()), folder.filename().string(), name,
                                  kPartNames[static_cast<size_t>(*part)]));
    }
    folder = root / name;
  }
  // Without a folder "train" the others are classes with unlucky names.
  if (folders[0].empty()) return {root, {}, {}};
  return folders;
}

}  // namespace

void visit(config::Visitor&, FolderConfig&) {}

std::unique_ptr<Parts> read_folder(const FolderConfig&, const ReadContext& context) {
  const fs::path root = find_user_data("folder", context.path);
  auto parts = std::make_unique<Parts>();
  const std::array<std::unique_ptr<ImageSet>*, kParts> sets{
      &parts->train_images, &parts->validation_images, &parts->test_images};
  const auto folders = part_folders(root);
  for (size_t i = 0; i < kParts; ++i) {
    if (folders[i].empty()) continue;
    const auto classes = i == 0 ? std::vector<std::string>{} : parts->train_images->class_names();
    *sets[i] = read_part(folders[i], classes, context.threads, parts->notes);
    parts->files.push_back(folders[i].string());
  }
  return parts;
}

}  // namespace gallop::data

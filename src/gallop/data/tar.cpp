#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/data/class_names.h"
#include "gallop/data/find.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/ignored_names.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"
#include "gallop/data/image_header.h"
#include "gallop/data/parallel.h"
#include "gallop/data/part.h"
#include "gallop/data/readers.h"
#include "gallop/data/shard.h"
#include "gallop/data/shard_paths.h"
#include "gallop/data/skip_summary.h"

namespace gallop::data {

namespace {

// Shards beyond this number are opened for each image, to stay below the limit on open files.
constexpr size_t kOpenShards = 256;

struct OpenShard {
  fs::path path;
  FileDescriptor file;
};

// The images of one split, read in place from their shards.
class TarImages final : public ImageSet {
 public:
  TarImages(std::vector<std::string> class_names, bool orient)
      : class_names_(std::move(class_names)), orient_(orient) {}

  size_t add_shard(const fs::path& path) {
    OpenShard shard{.path = path, .file = {}};
    if (shards_.size() < kOpenShards) shard.file = open_for_reading(path);
    shards_.push_back(std::move(shard));
    return shards_.size() - 1;
  }

  void add(size_t shard, const ShardImage& image, int32_t label) {
    items_.push_back({.shard = static_cast<uint32_t>(shard),
                      .label = label,
                      .offset = image.offset,
                      .size = image.size,
                      .name = names_.size()});
    names_ += image.name;
    names_ += '\0';
  }

  int64_t size() const override { return static_cast<int64_t>(items_.size()); }
  int64_t label(int64_t index) const override { return items_[static_cast<size_t>(index)].label; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string describe(int64_t index) const override {
    const Item& item = items_[static_cast<size_t>(index)];
    return fmt::format("{}: {}", printable(shards_[item.shard].path.string()),
                       printable(names_.data() + item.name));
  }

  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    DecodeRequest own_request = request;
    own_request.orient = request.orient && orient_;
    open(index, [&](const FileDescriptor& file, const Item& item, ThreadDecoder& own) {
      const auto bytes = static_cast<size_t>(item.size);
      reserve_bytes(own.file, bytes);
      if (!read_exactly(file, shards_[item.shard].path, item.offset, own.file.data(), item.size)) {
        throw DataError("the archive became shorter after the start");
      }
      own.decoder.decode({own.file.data(), bytes}, own_request, image);
    });
  }

  ImageHeader header(int64_t index) const override {
    ImageHeader header;
    open(index, [&](const FileDescriptor& file, const Item& item, ThreadDecoder& own) {
      header = read_image_header(file, shards_[item.shard].path, item.offset, item.size, own.file);
    });
    return orient_ ? oriented(header) : stored(header);
  }

  std::string identity() const override {
    std::string identity = "tar " + xxh3_128(names_);
    if (!orient_) identity += " as stored";
    for (const OpenShard& shard : shards_) identity += "\n" + file_state(shard.path);
    Hasher places;
    for (const Item& item : items_) {
      places.update(&item.shard, sizeof item.shard);
      places.update(&item.offset, sizeof item.offset);
      places.update(&item.size, sizeof item.size);
    }
    return identity + "\n" + places.digest();
  }

 private:
  struct Item {
    uint32_t shard;
    int32_t label;
    int64_t offset;
    int64_t size;
    size_t name;
  };

  template <typename Use>
  void open(int64_t index, const Use& use) const {
    const Item& item = items_[static_cast<size_t>(index)];
    const OpenShard& shard = shards_[item.shard];
    try {
      if (item.size > kMaxImageFileBytes) {
        throw DataError(fmt::format("longer than {}", format_bytes(kMaxImageFileBytes)));
      }
      const FileDescriptor opened = shard.file ? FileDescriptor() : open_for_reading(shard.path);
      use(shard.file ? shard.file : opened, item, thread_decoder());
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", describe(index), error.what()));
    }
  }

  std::vector<std::string> class_names_;
  bool orient_;
  std::vector<OpenShard> shards_;
  std::vector<Item> items_;
  std::string names_;
};

// An image with the split and the folders given by its shard's name and its own name.
struct Found {
  size_t shard;
  const ShardImage* image;
  Part part;
  std::string_view folders;  // "cat/side" of "train/cat/side/7.jpg".
};

std::string_view first_folder(std::string_view folders) {
  return folders.substr(0, folders.find('/'));
}

std::string_view last_folder(std::string_view folders) {
  return folders.substr(folders.rfind('/') + 1);
}

bool is_nested(std::string_view folders) { return folders.find('/') != std::string_view::npos; }

void remove_first_folder(std::string_view& folders) {
  folders.remove_prefix(std::min(folders.size(), first_folder(folders).size() + 1));
}

Found place(size_t shard, const ShardImage& image, Part part) {
  const size_t slash = image.name.rfind('/');
  const std::string_view name = image.name;
  return {shard, &image, part, slash == std::string::npos ? "" : name.substr(0, slash)};
}

// Whether the first folder is a split and not a class that happens to be named so: it is "train",
// and there are labels or class folders.
bool marks_parts(const Found& found) {
  const bool has_class = found.image->label >= 0 || is_nested(found.folders);
  return has_class && part_of_word(first_folder(found.folders)) == Part::kTrain;
}

// Whether all images are in folders of the same folder.
bool have_common_folder(const std::vector<Found*>& all) {
  return std::all_of(all.begin(), all.end(), [&](const Found* found) {
    return is_nested(found->folders) &&
           first_folder(found->folders) == first_folder(all.front()->folders);
  });
}

class TarSet {
 public:
  TarSet(const TarConfig& config, const ReadContext& context)
      : config_(config), context_(context), skips_(context.skip_broken) {}

  std::unique_ptr<ImageParts> read() {
    const fs::path root = find_shards(context_.path, paths_);
    auto parts = std::make_unique<ImageParts>();
    read_shards();
    place_images();
    choose_labels(*parts);
    remove_common_folders();
    choose_class_names(root);
    make_sets(*parts);
    add_notes(root, *parts);
    return parts;
  }

 private:
  void read_shards() {
    shards_.resize(paths_.size());
    const ShardCache cache{.folder = user_cache_folder() / "shards"};
    run_parallel(context_.threads, static_cast<int64_t>(paths_.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      try {
        const FileDescriptor file = open_for_reading(paths_[at].path);
        shards_[at] = read_shard_cached(file, paths_[at].path, context_.skip_broken, cache);
      } catch (const DataError& error) {
        if (!context_.skip_broken) throw;
        shards_[at].damage = error.what();
      }
    });
    for (const Shard& shard : shards_) {
      skips_.add(shard.skips);
      if (!shard.damage.empty()) skips_.add("rest of a damaged archive", shard.damage);
    }
  }

  void place_images() {
    for (size_t i = 0; i < shards_.size(); ++i) {
      for (const ShardImage& image : shards_[i].images) {
        found_.push_back(place(i, image, paths_[i].part));
      }
    }
    find_parts_inside();
    if (found_.empty()) {
      for (const Shard& shard : shards_) {
        if (!shard.damage.empty()) throw DataError(shard.damage);
      }
      throw DataError(fmt::format("{}: no {}images ({}) in {} shard{}{}", printable(context_.path),
                                  skips_.counts().empty() ? "" : "usable ", image_endings(),
                                  paths_.size(), paths_.size() == 1 ? "" : "s",
                                  skip_summary(skips_)));
    }
  }

  // Moves the folders of splits, as in "train/cat/7.jpg", from the folders to the split, unless the
  // shard's name says the split. An archive may have all in one folder: "pictures/train/cat/7.jpg".
  void find_parts_inside() {
    std::vector<Found*> unmarked;
    for (Found& found : found_) {
      if (!paths_[found.shard].is_marked) unmarked.push_back(&found);
    }
    while (!unmarked.empty() && have_common_folder(unmarked) &&
           !part_of_word(first_folder(unmarked.front()->folders))) {
      for (Found* found : unmarked) remove_first_folder(found->folders);
    }
    parts_inside_ = std::any_of(unmarked.begin(), unmarked.end(),
                                [](const Found* found) { return marks_parts(*found); });
    if (!parts_inside_) return;
    std::vector<Found> kept;
    for (Found& found : found_) {
      if (!paths_[found.shard].is_marked) {
        const auto part = part_of_word(first_folder(found.folders));
        if (!part) {
          leave_out(found, "image in no split",
                    "is in no folder of a split, while others are in train/");
          continue;
        }
        found.part = *part;
        remove_first_folder(found.folders);
      }
      kept.push_back(found);
    }
    found_ = std::move(kept);
  }

  // A folder around the classes, in each split: "train-0.tar: ILSVRC/train/cat/7.jpg".
  void remove_common_folders() {
    if (has_labels_) return;
    std::array<std::vector<Found*>, kParts> splits;
    for (Found& found : found_) splits[static_cast<size_t>(found.part)].push_back(&found);
    while (!found_.empty() && std::all_of(splits.begin(), splits.end(), have_common_folder)) {
      for (Found& found : found_) remove_first_folder(found.folders);
    }
  }

  // The class of an image is its first folder; the inner one only if data.classes or classes.txt
  // name those.
  void choose_class_folders() {
    if (has_labels_) return;
    const auto is_class = [&](const Found& found) {
      return class_names_.empty() || std::find(class_names_.begin(), class_names_.end(),
                                               first_folder(found.folders)) != class_names_.end();
    };
    const bool takes_inner = std::none_of(found_.begin(), found_.end(), is_class);
    if (class_names_.empty() && !parts_inside_) refuse_ambiguous_folders();
    for (Found& found : found_) {
      found.folders = takes_inner ? last_folder(found.folders) : first_folder(found.folders);
    }
  }

  void refuse_ambiguous_folders() const {
    for (const Found& found : found_) {
      std::string_view inner = found.folders;
      remove_first_folder(inner);
      if (paths_[found.shard].is_marked || part_of_word(first_folder(inner)) != Part::kTrain) {
        continue;
      }
      throw DataError(fmt::format(
          "{}: is in a folder '{}' inside of another; pack splits as the outermost folders, "
          "train/CLASS/NAME.jpg",
          name_of(found), printable(first_folder(inner))));
    }
    if (found_.empty() || !std::all_of(found_.begin(), found_.end(), [](const Found& found) {
          return is_nested(found.folders);
        })) {
      return;
    }
    const std::string_view folders = found_.front().folders;
    throw DataError(fmt::format(
        "{}: all images are in two folders or more, so that the class may be '{}' or '{}'; name "
        "the classes in data.classes, or pack the images as CLASS/NAME.jpg",
        name_of(found_.front()), printable(first_folder(folders)),
        printable(last_folder(folders))));
  }

  // Labels come from .cls members for all images, or from folders for all.
  void choose_labels(ImageParts& parts) {
    has_labels_ = std::any_of(found_.begin(), found_.end(),
                              [](const Found& found) { return found.image->label >= 0; });
    take_unlabeled_test(parts);
    std::erase_if(found_, [&](const Found& found) {
      const bool good = has_class(found);
      if (!good)
        leave_out(found, "image without a label",
                  has_labels_ ? "has no .cls, though others have"
                              : "has neither a .cls nor a class folder");
      return !good;
    });
  }

  bool has_class(const Found& found) const {
    return has_labels_ ? found.image->label >= 0 : !found.folders.empty();
  }

  // A test split in which no image has a class can only be predicted.
  void take_unlabeled_test(ImageParts& parts) {
    const auto is_test = [](const Found& found) { return found.part == Part::kTest; };
    const bool has_others = std::any_of(found_.begin(), found_.end(), [&](const Found& found) {
      return !is_test(found) && has_class(found);
    });
    const bool some_labeled = std::any_of(found_.begin(), found_.end(), [&](const Found& found) {
      return is_test(found) && has_class(found);
    });
    if (!has_others || some_labeled) return;
    std::unique_ptr<TarImages> images;
    size_t last_shard = 0, slot = 0;
    for (const Found& found : found_) {
      if (!is_test(found)) continue;
      if (!images)
        images = std::make_unique<TarImages>(std::vector<std::string>{"unknown"}, context_.orient);
      if (images->size() == 0 || last_shard != found.shard) {
        slot = images->add_shard(paths_[found.shard].path);
        last_shard = found.shard;
      }
      images->add(slot, *found.image, 0);
    }
    if (!images) return;
    parts.notes.push_back(unlabeled_test_note(printable(context_.path), images->size()));
    parts.unlabeled_test = std::move(images);
    std::erase_if(found_, is_test);
  }

  void choose_class_names(const fs::path& root) {
    class_names_ = config_.classes;
    if (class_names_.empty()) class_names_ = read_class_names_if_there(root / "classes.txt");
    choose_class_folders();
    if (!class_names_.empty()) return;
    if (has_labels_) {
      int32_t largest = 0;
      for (const Found& found : found_) largest = std::max(largest, found.image->label);
      for (int32_t i = 0; i <= largest; ++i) class_names_.push_back(std::to_string(i));
    } else {
      std::set<std::string_view> folders;
      for (const Found& found : found_) {
        if (found.part == Part::kTrain) folders.insert(found.folders);
      }
      class_names_.assign(folders.begin(), folders.end());
    }
  }

  // The class of an image; -1 if it is missing and that is tolerated.
  int32_t label_of(const Found& found) {
    const auto classes = static_cast<int32_t>(class_names_.size());
    if (has_labels_) {
      if (found.image->label < classes) return found.image->label;
      leave_out(found, "invalid label",
                fmt::format("has label {}, but there are {} classes (0 to {})", found.image->label,
                            classes, classes - 1));
      return -1;
    }
    const auto at = class_numbers_.find(std::string(found.folders));
    if (at != class_numbers_.end()) return at->second;
    leave_out(found, "unknown class",
              fmt::format("its folder '{}' is none of the {} classes", printable(found.folders),
                          classes));
    return -1;
  }

  void make_sets(ImageParts& parts) {
    for (size_t i = 0; i < class_names_.size(); ++i) {
      class_numbers_.emplace(class_names_[i], static_cast<int32_t>(i));
    }
    std::array<std::unique_ptr<TarImages>, kParts> sets;
    std::array<size_t, kParts> last_shard{}, slot{};
    for (const Found& found : found_) {
      const int32_t label = label_of(found);
      if (label < 0) continue;
      const auto part = static_cast<size_t>(found.part);
      if (!sets[part]) sets[part] = std::make_unique<TarImages>(class_names_, context_.orient);
      if (sets[part]->size() == 0 || last_shard[part] != found.shard) {
        slot[part] = sets[part]->add_shard(paths_[found.shard].path);
        last_shard[part] = found.shard;
      }
      sets[part]->add(slot[part], *found.image, label);
    }
    if (!sets[0]) {
      throw DataError(fmt::format("{}: no images for training{}", printable(context_.path),
                                  skip_summary(skips_)));
    }
    parts.train = std::move(sets[0]);
    parts.validation = std::move(sets[1]);
    parts.test = std::move(sets[2]);
  }

  void add_notes(const fs::path& root, ImageParts& parts) const {
    int64_t ignored = 0, hidden = 0;
    std::string first_hidden;
    for (size_t i = 0; i < shards_.size(); ++i) {
      parts.files.push_back(paths_[i].path.string());
      ignored += shards_[i].ignored;
      if (hidden == 0) first_hidden = shards_[i].first_hidden;
      hidden += shards_[i].hidden;
    }
    if (ignored > 0) {
      parts.notes.push_back(fmt::format("{}: {} other {} ignored in the shards",
                                        printable(root.string()), format_count(ignored),
                                        ignored == 1 ? "member" : "members"));
    }
    if (hidden > 0) {
      parts.notes.push_back(
          hidden_images_note(printable(root.string()), hidden, printable(first_hidden)));
    }
    parts.skipped = skips_.counts();
  }

  std::string name_of(const Found& found) const {
    return fmt::format("{}: {}", printable(paths_[found.shard].path.string()),
                       printable(found.image->name));
  }

  void leave_out(const Found& found, const char* reason, const std::string& why) {
    skips_.add(reason, fmt::format("{}: {}", name_of(found), why));
  }

  const TarConfig& config_;
  const ReadContext& context_;
  std::vector<ShardPath> paths_;
  std::vector<Shard> shards_;
  std::vector<Found> found_;
  std::vector<std::string> class_names_;
  std::unordered_map<std::string, int32_t> class_numbers_;
  bool has_labels_ = false;
  bool parts_inside_ = false;  // The archives have folders of splits.
  SkipPolicy skips_;
};

}  // namespace

void visit(config::Visitor& visitor, TarConfig& config) {
  visitor.field({.name = "classes",
                 .help = "names of the classes in the order of their labels; without it, "
                         "classes.txt beside the shards, else folders or numbers"},
                config.classes);
}

std::unique_ptr<ImageParts> read_tar(const TarConfig& config, const ReadContext& context) {
  return TarSet(config, context).read();
}

}  // namespace gallop::data

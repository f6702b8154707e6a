#include "gallop/data/image_table.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/find.h"
#include "gallop/data/folder_images.h"
#include "gallop/data/ignored_names.h"
#include "gallop/data/image_module.h"
#include "gallop/data/image_table_files.h"
#include "gallop/data/image_targets.h"
#include "gallop/data/parquet_images.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/skips.h"

namespace gallop::data {

namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the column has image files, alone or with their names, not the names alone.
bool has_image_bytes(const TableReader& file, const std::string& image) {
  if (has(file.names(), image + ".bytes")) return true;
  return has(file.names(), image) && file.has_bytes(file.find(image));
}

std::string first_folder(const std::string& name) { return name.substr(0, name.find('/')); }

// Whether every image is in a folder that is named as a split, and some in that of the training.
bool all_in_part_folders(const Names& names) {
  bool has_train = false;
  for (const std::string& name : names) {
    const auto part =
        name.find('/') == std::string::npos ? std::nullopt : part_of_word(first_folder(name));
    if (!part) return false;
    has_train = has_train || *part == Part::kTrain;
  }
  return has_train;
}

/// Reads the tables of the splits one after the other. The training split comes first, and defines
/// task and classes.
class ImageTableReader {
 public:
  ImageTableReader(const ImageTableConfig& config, const DataContext& context)
      : config_(config),
        context_(context),
        targets_(config, context),
        skips_(context.config.on_error == "skip"),
        parts_(std::make_unique<ImageParts>()) {}

  std::unique_ptr<ImageParts> read() {
    const auto files = find_image_tables(context_.config.path);
    for (size_t i = 0; i < kParts; ++i) {
      if (!files[i].empty()) read_table(static_cast<Part>(i), files[i]);
    }
    parts_->task = targets_.task();
    if (targets_.predicts_numbers()) parts_->targets = targets_.columns();
    parts_->standardize_targets = targets_.task() == "regression" && config_.standardize_targets;
    parts_->skipped = skips_.counts();
    return std::move(parts_);
  }

  /// The group of each training image, if data.group is a column; otherwise empty.
  const Names& groups() const { return groups_of_images_; }
  /// The images, where they are files of their own.
  const std::vector<NamedFiles>& named_files() const { return named_files_; }

 private:
  void read_table(Part part, const Names& files) {
    TableReader file(files, {.missing = config_.missing});
    for (const std::string& name : files) parts_->files.push_back(name);
    for (const std::string& note : file.notes()) parts_->notes.push_back(note);
    const std::string image = image_column(file);
    if (part == Part::kTrain) {
      // Otherwise it is an expression for the names of the images.
      has_groups_ = has(file.names(), context_.config.group);
      targets_.choose(file, image, parts_->notes);
    }
    const bool reads_groups = part == Part::kTrain && has_groups_;
    // As in competitions, whose test tables have no column of targets.
    const bool has_targets =
        part != Part::kTest ||
        std::any_of(targets_.columns().begin(), targets_.columns().end(),
                    [&](const std::string& name) { return has(file.names(), name); });
    if (has_targets) file.scan_only(targets_.columns());
    std::vector<ColumnType> types(file.names().size(), {.kind = ColumnKind::kIgnored});
    const bool has_bytes = has_image_bytes(file, image);
    if (!has_bytes) types[file.find(image)] = {.kind = ColumnKind::kCategory, .is_required = true};
    for (const std::string& name : has_targets ? targets_.columns() : Names()) {
      types[file.find(name)] = targets_.type(/*is_required=*/part != Part::kTest);
    }
    if (reads_groups) {
      types[file.find(context_.config.group)] = {.kind = ColumnKind::kCategory,
                                                 .is_required = true};
    }
    const Table table = file.read(types, skips_);
    if (part == Part::kTrain) targets_.set_classes(table);
    groups_ = reads_groups ? table.find(context_.config.group) : nullptr;
    is_unlabeled_ = part == Part::kTest && (!has_targets || targets_.all_missing(table));
    if (has_bytes) {
      add_stored_images(part, table, image);
    } else {
      add_files(part, table, image);
    }
    if (is_unlabeled_) {
      parts_->notes.push_back(unlabeled_test_note(printable(table.files.front()), table.rows()));
    } else if (!set_of(part) || set_of(part)->size() == 0) {
      throw DataError(fmt::format("{}: has no row with a valid target{}",
                                  printable(table.files.front()), skip_summary(skips_)));
    }
  }

  std::string image_column(const TableReader& file) const {
    if (!config_.image.empty()) {
      if (!has_image_bytes(file, config_.image)) file.find(config_.image);
      return config_.image;
    }
    for (const char* name : {"file_name", "image", "img", "path", "file", "filename"}) {
      if (has(file.names(), name) || has_image_bytes(file, name)) return name;
    }
    throw DataError(
        fmt::format("{}: which column names the images? It has {}; set data.image to one of them",
                    printable(file.file()), printable(join_names(file.names(), "and"))));
  }

  std::unique_ptr<ImageSet>& set_of(Part part) {
    if (part == Part::kTrain) return parts_->train;
    if (part == Part::kValidation) return parts_->validation;
    return is_unlabeled_ ? parts_->unlabeled_test : parts_->test;
  }

  bool orients() const { return context_.config.exif_orientation == "apply"; }

  // Calls `add` with each row whose targets are valid.
  template <typename Add>
  void each_row(const Table& table, const Add& add) {
    std::vector<float> numbers(static_cast<size_t>(targets_.size()));
    for (int64_t row = 0; row < table.rows(); ++row) {
      const auto at = static_cast<size_t>(row);
      int32_t label = 0;
      const std::string wrong =
          is_unlabeled_ ? std::string() : targets_.read(table, at, label, numbers);
      if (wrong.empty()) {
        add(at, label, numbers);
      } else {
        skips_.add("invalid target", fmt::format("{}: {}", printable(table.place(row)), wrong));
      }
    }
  }

  void add_group(size_t row) {
    if (groups_ == nullptr) return;
    groups_of_images_.push_back(groups_->values[static_cast<size_t>(groups_->codes[row])]);
  }

  // For the run's identity, with one entry for all tables of a folder.
  void add_named(const NamedFiles& files) {
    auto& all = named_files_;
    const auto known = std::find_if(all.begin(), all.end(), [&](const NamedFiles& other) {
      return other.folder == files.folder;
    });
    if (known == all.end()) {
      all.push_back(files);
    } else {
      known->names.insert(known->names.end(), files.names.begin(), files.names.end());
    }
  }

  // Images in the Parquet files of the table itself.
  void add_stored_images(Part part, const Table& table, const std::string& image) {
    constexpr int64_t kShareOfMemory = 4;
    const OpenOptions& options = context_.options;
    auto images = std::make_unique<ParquetImages>(
        std::make_shared<const ParquetGroups>(
            table.files, options.memory_bytes / kShareOfMemory / options.memory_parts),
        targets_.class_names(),
        ParquetImages::Options{
            .column = image, .orient = orients(), .target_size = targets_.size()});
    each_row(table, [&](size_t row, int32_t label, const std::vector<float>& numbers) {
      const auto file = table.file_of.empty() ? 0 : static_cast<size_t>(table.file_of[row]);
      images->add(file, table.lines[row], label, numbers);
      add_group(row);
    });
    for (const NamedFiles& files : images->files()) add_named(files);
    set_of(part) = std::move(images);
  }

  // Image files that the table names.
  void add_files(Part part, const Table& table, const std::string& image) {
    const fs::path table_folder = fs::path(table.files.front()).parent_path();
    const fs::path root = config_.root.empty() ? (table_folder.empty() ? "." : table_folder)
                                               : find_user_data("image-table", config_.root);
    std::array<std::unique_ptr<FolderImages>, kParts> images;
    const TableColumn& names = *table.find(image);
    const bool has_part_folders = part == Part::kTrain && all_in_part_folders(names.values);
    add_named({.folder = root.string(), .names = names.values});
    each_row(table, [&](size_t row, int32_t label, const std::vector<float>& numbers) {
      const std::string& name = names.values[static_cast<size_t>(names.codes[row])];
      const Part of = has_part_folders ? *part_of_word(first_folder(name)) : part;
      auto& set = images[static_cast<size_t>(of)];
      if (!set) {
        set = std::make_unique<FolderImages>(root, targets_.class_names(), orients(),
                                             targets_.size());
      }
      set->add(name, label, numbers);
      if (of == Part::kTrain) add_group(row);
    });
    for (size_t i = 0; i < kParts; ++i) {
      if (images[i]) set_of(static_cast<Part>(i)) = std::move(images[i]);
    }
  }

  const ImageTableConfig& config_;
  const DataContext& context_;
  ImageTargets targets_;
  SkipPolicy skips_;
  std::unique_ptr<ImageParts> parts_;
  Names groups_of_images_;
  std::vector<NamedFiles> named_files_;
  bool has_groups_ = false;              // data.group is a column.
  const TableColumn* groups_ = nullptr;  // A column of the table that is being read; null: none.
  bool is_unlabeled_ = false;            // The same.
};

}  // namespace

void visit(config::Visitor& visitor, ImageTableConfig& config) {
  visitor.field({.name = "image",
                 .help = "column of the images; empty: file_name, image, img, path, file or "
                         "filename"},
                config.image);
  visitor.field({.name = "target",
                 .help = "column to predict; empty: targets, label, labels, or the only other one"},
                config.target);
  visitor.field({.name = "targets", .help = "several columns to predict"}, config.targets);
  visitor.field(
      {.name = "label_separator", .help = "separator of the labels of an image in one column"},
      config.label_separator);
  visitor.field({.name = "missing",
                 .help = "texts that stand for missing values, besides NA, nan, null, ? and such"},
                config.missing);
  visitor.field({.name = "root",
                 .help = "folder that the names of images are relative to; empty: the table's"},
                config.root);
  visitor.field({.name = "standardize_targets",
                 .help = "train a regression on targets of mean 0 and deviation 1; metrics and "
                         "predictions are in the original units"},
                config.standardize_targets);
}

std::unique_ptr<DataModule> open_image_table(const ImageTableConfig& config,
                                             const DataContext& context) {
  ImageTableReader reader(config, context);
  auto parts = reader.read();
  return make_image_module(std::move(parts), context, reader.groups(), reader.named_files());
}

}  // namespace gallop::data

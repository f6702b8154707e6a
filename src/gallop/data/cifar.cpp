#include "gallop/data/cifar.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/class_names.h"
#include "gallop/data/find.h"
#include "gallop/data/memory_images.h"
#include "gallop/data/parallel.h"
#include "gallop/data/readers.h"
#include "gallop/data/shared_data.h"

namespace gallop::data {

namespace {

// The files of one of the two data sets.
struct Layout {
  Wanted wanted;
  std::string archive_folder;  // The folder in its archive.
  std::vector<std::string> train_files;
  std::string test_file;
  int64_t records_per_train_file;
  std::string names_file;
  int64_t classes;
  size_t label_bytes;
  size_t label_at;
};

std::string missing_files(const fs::path& folder, const Layout& layout) {
  std::vector<std::string> missing;
  std::vector<std::string> files = layout.train_files;
  files.insert(files.end(), {layout.test_file, layout.names_file});
  for (const std::string& name : files) {
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored)) missing.push_back(name);
  }
  return missing.empty() ? "" : "has no " + join_names(missing);
}

// Returns the folder itself, or the archive's folder in it.
fs::path files_folder(const fs::path& folder, const Layout& layout) {
  return missing_files(folder, layout).empty() ? folder : folder / layout.archive_folder;
}

std::vector<std::string> read_names(const fs::path& path, int64_t expected) {
  auto names = read_class_names(path);
  if (static_cast<int64_t>(names.size()) != expected) {
    throw DataError(fmt::format("{}: {} class names, where {} are expected",
                                printable(path.string()), names.size(), expected));
  }
  return names;
}

std::unique_ptr<ImageSet> read_part(const std::vector<fs::path>& paths, const std::string& part,
                                    const Layout& layout,
                                    const std::vector<std::string>& class_names,
                                    const ReadContext& context, SkipPolicy& skips) {
  std::vector<MappedFile> files;
  std::vector<size_t> first{0};
  for (const fs::path& path : paths) {
    files.emplace_back(path);
    first.push_back(first.back() + count_cifar_records(files.back().bytes(), layout.label_bytes,
                                                       printable(path.string())));
  }
  const size_t count = first.back(), pixels = count * kCifarPixels;
  std::string identity =
      identity_of(fmt::format("cifar {} {}", layout.label_bytes, layout.label_at), paths);
  // The pixels of all images, then all labels.
  const auto unpack = [&] {
    Bytes bytes(pixels + count * sizeof(int32_t));
    auto* labels = reinterpret_cast<int32_t*>(bytes.data() + pixels);
    run_parallel(context.threads, static_cast<int64_t>(files.size()), [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      unpack_cifar(files[at].bytes(), layout.label_bytes, layout.label_at,
                   bytes.data() + first[at] * kCifarPixels, labels + first[at]);
    });
    return bytes;
  };
  const Block<uint8_t> unpacked = context.shared != nullptr
                                      ? context.shared->content(identity, unpack)
                                      : Block<uint8_t>(unpack());
  const auto labels = unpacked.part_as<int32_t>(pixels, count);
  // The file that contains an image, and its index there.
  const auto item = [&](int64_t index) {
    const auto file = static_cast<size_t>(
        std::upper_bound(first.begin(), first.end(), static_cast<size_t>(index)) - first.begin() -
        1);
    return fmt::format("{}: item {}", printable(paths[file].string()),
                       index - static_cast<int64_t>(first[file]));
  };
  MemoryImages::Content content;
  content.shape = {kCifarSide, kCifarSide, 3};
  content.pixels = unpacked.part(0, pixels);
  content.identity = std::move(identity);
  content.labels.assign(labels.begin(), labels.end());
  content.class_names = class_names;
  content.describe = [part](int64_t index) {
    return fmt::format("{} images, item {}", part, index);
  };
  return with_valid_labels(std::move(content), item, skips);
}

std::unique_ptr<ImageParts> read_cifar(const Layout& layout, const ReadContext& context) {
  const fs::path folder = files_folder(find_data_set(layout.wanted, context.path), layout);
  const auto class_names = read_names(folder / layout.names_file, layout.classes);
  std::vector<fs::path> train;
  for (const std::string& name : layout.train_files) train.push_back(folder / name);
  auto parts = std::make_unique<ImageParts>();
  SkipPolicy skips(context.skip_broken);
  parts->train = read_part(train, "train", layout, class_names, context, skips);
  parts->test = read_part({folder / layout.test_file}, "test", layout, class_names, context, skips);
  parts->skipped = skips.counts();
  for (const fs::path& path : train) parts->files.push_back(path.string());
  parts->files.push_back((folder / layout.test_file).string());

  const int64_t expected =
      layout.records_per_train_file * static_cast<int64_t>(layout.train_files.size());
  if (parts->train->size() != expected && parts->skipped.empty()) {
    parts->notes.push_back(fmt::format("{}: {} training images, where the original has {}",
                                       printable(folder.string()),
                                       format_count(parts->train->size()), format_count(expected)));
  }
  return parts;
}

Layout complete(Layout layout, const std::string& archive) {
  layout.wanted.command = fmt::format(
      "mkdir -p FOLDER && curl -fL https://www.cs.toronto.edu/~kriz/{} | tar -xz -C FOLDER",
      archive);
  layout.wanted.missing = [layout](const fs::path& folder) {
    const std::string missing = missing_files(folder, layout);
    return missing_files(folder / layout.archive_folder, layout).empty() ? "" : missing;
  };
  return layout;
}

}  // namespace

size_t count_cifar_records(std::string_view content, size_t label_bytes, const std::string& name) {
  const size_t record = label_bytes + kCifarPixels;
  if (content.empty() || content.size() % record != 0) {
    throw DataError(
        fmt::format("{}: {} bytes, which is not a multiple of the {} bytes of a record; the file "
                    "is truncated or not of the binary version, get it again",
                    name, content.size(), record));
  }
  return content.size() / record;
}

void unpack_cifar(std::string_view content, size_t label_bytes, size_t label_at, uint8_t* pixels,
                  int32_t* labels) {
  constexpr size_t kPlane = kCifarPixels / 3;
  const auto* record = reinterpret_cast<const uint8_t*>(content.data());
  const size_t count = content.size() / (label_bytes + kCifarPixels);
  for (size_t i = 0; i < count; ++i, record += label_bytes + kCifarPixels) {
    labels[i] = record[label_at];
    const uint8_t* planes = record + label_bytes;
    uint8_t* out = pixels + i * kCifarPixels;
    for (size_t at = 0; at < kPlane; ++at) {
      out[3 * at] = planes[at];
      out[3 * at + 1] = planes[kPlane + at];
      out[3 * at + 2] = planes[2 * kPlane + at];
    }
  }
}

void visit(config::Visitor&, Cifar10Config&) {}

void visit(config::Visitor& visitor, Cifar100Config& config) {
  visitor.field({.name = "labels",
                 .help = "the 100 fine or the 20 coarse classes",
                 .choices = {"fine", "coarse"}},
                config.labels);
}

std::unique_ptr<ImageParts> read_cifar10(const Cifar10Config&, const ReadContext& context) {
  Layout layout{.wanted = {.name = "cifar10", .command = {}, .missing = {}},
                .archive_folder = "cifar-10-batches-bin",
                .train_files = {},
                .test_file = "test_batch.bin",
                .records_per_train_file = 10000,
                .names_file = "batches.meta.txt",
                .classes = 10,
                .label_bytes = 1,
                .label_at = 0};
  for (int i = 1; i <= 5; ++i) layout.train_files.push_back(fmt::format("data_batch_{}.bin", i));
  return read_cifar(complete(std::move(layout), "cifar-10-binary.tar.gz"), context);
}

std::unique_ptr<ImageParts> read_cifar100(const Cifar100Config& config,
                                          const ReadContext& context) {
  const bool fine = config.labels == "fine";
  const Layout layout{.wanted = {.name = "cifar100", .command = {}, .missing = {}},
                      .archive_folder = "cifar-100-binary",
                      .train_files = {"train.bin"},
                      .test_file = "test.bin",
                      .records_per_train_file = 50000,
                      .names_file = fine ? "fine_label_names.txt" : "coarse_label_names.txt",
                      .classes = fine ? 100 : 20,
                      .label_bytes = 2,
                      .label_at = fine ? size_t{1} : size_t{0}};
  return read_cifar(complete(layout, "cifar-100-binary.tar.gz"), context);
}

}  // namespace gallop::data

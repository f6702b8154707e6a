// Fashion-MNIST and MNIST: four IDX files each, of the same format.
#include <array>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/idx.h"
#include "gallop/data/memory_images.h"
#include "gallop/data/parallel.h"
#include "gallop/data/readers.h"

namespace gallop::data {

namespace {

// A file name is the stem, a '-' or a '.', then the extension.
struct FileName {
  const char* stem;
  const char* ending;
  int dimensions;
};
constexpr std::array<FileName, 4> kFiles{{{"train-images", "idx3-ubyte", 3},
                                          {"train-labels", "idx1-ubyte", 1},
                                          {"t10k-images", "idx3-ubyte", 3},
                                          {"t10k-labels", "idx1-ubyte", 1}}};

// Returns the file under one of its usual names; empty if there is none.
fs::path find_file(const fs::path& folder, const FileName& name) {
  for (const char* joint : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      fs::path path = folder / fmt::format("{}{}{}{}", name.stem, joint, name.ending, suffix);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path;
    }
  }
  return {};
}

std::string missing_files(const fs::path& folder) {
  std::vector<std::string> missing;
  for (const FileName& name : kFiles) {
    if (find_file(folder, name).empty()) {
      missing.push_back(fmt::format("{}-{}[.gz]", name.stem, name.ending));
    }
  }
  return missing.empty() ? "" : "has no " + join_names(missing);
}

std::unique_ptr<ImageSet> make_images(IdxArray images, const IdxArray& labels,
                                      const std::string& part, const fs::path& images_path,
                                      const fs::path& labels_path,
                                      const std::vector<std::string>& class_names,
                                      SkipPolicy& skips) {
  const std::string name = printable(images_path.string());
  const int64_t count = images.sizes[0], height = images.sizes[1], width = images.sizes[2];
  if (count != labels.sizes[0]) {
    throw DataError(fmt::format("{} has {} images, but {} has {} labels", name, count,
                                printable(labels_path.string()), labels.sizes[0]));
  }
  constexpr int64_t kLongestSide = 1 << 14;
  if (count == 0 || height == 0 || width == 0 || height > kLongestSide || width > kLongestSide) {
    throw DataError(fmt::format("{}: {} images of {} x {} pixels cannot be trained on", name, count,
                                height, width));
  }
  MemoryImages::Content content;
  content.shape = {static_cast<int>(height), static_cast<int>(width), 1};
  content.labels.assign(labels.values.begin(), labels.values.end());
  content.pixels = std::move(images.values);
  content.identity = identity_of("idx", {images_path});
  content.class_names = class_names;
  content.describe = [part](int64_t index) {
    return fmt::format("{} images, item {}", part, index);
  };
  const auto item = [&](int64_t index) {
    return fmt::format("{}: item {}", printable(labels_path.string()), index);
  };
  return with_valid_labels(std::move(content), item, skips);
}

std::unique_ptr<ImageParts> read_four_files(const Wanted& wanted, const ReadContext& context,
                                            const std::vector<std::string>& class_names) {
  const fs::path folder = find_data_set(wanted, context.path);
  auto parts = std::make_unique<ImageParts>();
  std::array<fs::path, 4> paths;
  for (size_t i = 0; i < kFiles.size(); ++i) {
    paths[i] = find_file(folder, kFiles[i]);
    parts->files.push_back(paths[i].string());
  }
  std::array<IdxArray, 4> arrays;
  run_parallel(context.threads, 4, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    arrays[at] = read_idx(paths[at], kFiles[at].dimensions, context.shared);
  });
  SkipPolicy skips(context.skip_broken);
  parts->train =
      make_images(std::move(arrays[0]), arrays[1], "train", paths[0], paths[1], class_names, skips);
  parts->test =
      make_images(std::move(arrays[2]), arrays[3], "test", paths[2], paths[3], class_names, skips);
  parts->skipped = skips.counts();
  if (parts->train->stored_shape() != parts->test->stored_shape()) {
    throw DataError(
        fmt::format("{}: training and test images differ in size", printable(folder.string())));
  }
  return parts;
}

}  // namespace

void visit(config::Visitor&, FashionMnistConfig&) {}
void visit(config::Visitor&, MnistConfig&) {}

std::unique_ptr<ImageParts> read_fashion_mnist(const FashionMnistConfig&,
                                               const ReadContext& context) {
  const Wanted wanted{.name = "fashion-mnist",
                      .command = "sudo apt-get install dataset-fashion-mnist",
                      .missing = missing_files};
  return read_four_files(wanted, context,
                         {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt",
                          "Sneaker", "Bag", "Ankle boot"});
}

std::unique_ptr<ImageParts> read_mnist(const MnistConfig&, const ReadContext& context) {
  const Wanted wanted{.name = "mnist",
                      .command =
                          "curl -fL --create-dirs --output-dir FOLDER --remote-name-all "
                          "'https://ossci-datasets.s3.amazonaws.com/mnist/"
                          "{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz'",
                      .missing = missing_files};
  return read_four_files(wanted, context, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

}  // namespace gallop::data

// Measures augmentations in one thread, without reading and normalizing; prints one line of JSON
// with the microseconds of CPU time for each image.
//
//   bench_augment SIZE SECONDS NAME...
//
// NAME is one of the operations below, an augmentation with options ("rand-augment num_ops=1"), or
// mixup, cutmix, mixup-bf16 or cutmix-bf16 of batches of 64 images, the latter in channels_last.
#include <cstdio>
#include <ctime>
#include <map>
#include <string>

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/data/augment.h"
#include "gallop/data/batch_transforms/mixing.h"
#include "gallop/data/pixels/pixel_editor.h"

namespace gallop::benchmark {

namespace {

using data::pixels::Operation;
using Operations = std::vector<Operation>;

constexpr int kImages = 16;

std::map<std::string, Operations> single_operations(int size) {
  const data::pixels::Warp rotated{.matrix =
                                       data::pixels::affine_matrix({.angle = -9}, size, size)};
  data::pixels::Warp smooth = rotated;
  smooth.interpolation = data::pixels::Interpolation::kBilinear;
  return {{"brightness", {data::pixels::Brightness{1.3}}},
          {"saturation", {data::pixels::Saturation{1.3}}},
          {"contrast", {data::pixels::Contrast{1.3}}},
          {"sharpness", {data::pixels::Sharpness{1.3}}},
          {"hue", {data::pixels::Hue{0.1}}},
          {"posterize", {data::pixels::Posterize{4}}},
          {"solarize", {data::pixels::Solarize{128}}},
          {"autocontrast", {data::pixels::AutoContrast{}}},
          {"equalize", {data::pixels::Equalize{}}},
          {"rotate", {rotated}},
          {"rotate-bilinear", {smooth}}};
}

// Gradients with noise, so that histograms and saturation are as in photographs.
std::vector<std::vector<uint8_t>> make_images(int size) {
  std::vector<std::vector<uint8_t>> images(kImages);
  Philox random(1, Purpose::kSample, 0, 0);
  for (auto& image : images) {
    const auto slope_x = static_cast<int>(random.below(3)),
               slope_y = static_cast<int>(random.below(3));
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        for (int c = 0; c < 3; ++c) {
          const int value = 40 + 20 * c + (slope_x * x + slope_y * y) * 100 / size;
          image.push_back(static_cast<uint8_t>(value + static_cast<int>(random() % 16)));
        }
      }
    }
  }
  return images;
}

std::unique_ptr<data::Augmentation> augmentation_of(const std::string& text) {
  static const data::AugmentationRegistry kRegistry = data::built_in_augmentations();
  config::Node root;
  root.kind = config::Node::Kind::kMap;
  config::Problems problems;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const size_t equals = text.find('=', at);
    if (equals == std::string::npos) throw UsageError("'" + text + "': options are KEY=VALUE");
    const std::string key = text.substr(at + 1, equals - at - 1);
    const std::string value = text.substr(equals + 1, text.find(' ', equals) - equals - 1);
    apply_override(root, key, config::parse_override_value(value, key), problems);
  }
  config::Component component(kRegistry, text.substr(0, text.find(' ')));
  read_fields(
      root, [&](config::Visitor& v) { component.visit_fields(v); }, problems);
  problems.throw_if_any();
  return kRegistry.build(component);
}

// The CPU time of this thread, which depends less on what else runs than that of a clock does.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Microseconds per image for mixing a batch in memory.
double microseconds_of_mixing(const std::string& name, int size, double seconds) {
  constexpr int64_t kBatch = 64;
  const bool is_bf16 = name.ends_with("-bf16");
  at::Tensor batch = at::randn({kBatch, 3, size, size});
  if (is_bf16) batch = batch.to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  std::vector<data::MixedRow> plan;
  for (int64_t row = 0; row < kBatch; ++row) {
    plan.push_back({.partner = (row + kBatch - 1) % kBatch, .keep = 0.7});
    if (name.starts_with("cutmix")) {
      plan.back().box =
          data::cutmix_box(data::MixingVariant::kTorchvision, size, size, 0.5, size / 2, size / 2);
    }
  }
  int64_t count = 0;
  const double begin = cpu_seconds();
  while (cpu_seconds() < begin + seconds) {
    data::mix_rows(batch, plan);
    count += kBatch;
  }
  return (cpu_seconds() - begin) * 1e6 / static_cast<double>(count);
}

double microseconds_of(const std::string& name, int size, double seconds) {
  if (name.starts_with("mixup") || name.starts_with("cutmix")) {
    return microseconds_of_mixing(name, size, seconds);
  }
  const auto singles = single_operations(size);
  const auto single = singles.find(name);
  const auto augmentation = single == singles.end() ? augmentation_of(name) : nullptr;
  const auto images = make_images(size);
  const data::ImageShape shape{size, size, 3};
  data::pixels::PixelEditor editor;
  Operations operations;
  uint64_t count = 0;
  const double begin = cpu_seconds();
  while (cpu_seconds() < begin + seconds) {
    for (const auto& image : images) {
      if (augmentation) {
        operations.clear();
        Philox random(1, Purpose::kPixels, 0, count);
        augmentation->draw(shape, random, operations);
        editor.apply(operations, shape, image.data());
      } else {
        editor.apply(single->second, shape, image.data());
      }
      ++count;
    }
  }
  return (cpu_seconds() - begin) * 1e6 / static_cast<double>(count);
}

int run(int argc, char** argv) {
  if (argc < 4) throw UsageError("usage: bench_augment SIZE SECONDS NAME...");
  const int size = std::stoi(argv[1]);
  const double seconds = std::stod(argv[2]);
  if (size < 1 || size > 4096) throw UsageError("SIZE must be 1 to 4096");
  at::set_num_threads(1);
  nlohmann::json result;
  for (int i = 3; i < argc; ++i) result[argv[i]] = microseconds_of(argv[i], size, seconds);
  std::puts(result.dump().c_str());
  return 0;
}

}  // namespace

}  // namespace gallop::benchmark

int main(int argc, char** argv) {
  try {
    return gallop::benchmark::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_augment: {}\n", error.what());
    return 1;
  }
}

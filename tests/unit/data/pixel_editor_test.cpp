#include "gallop/data/pixels/pixel_editor.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/data/pixels/pixel_loops.h"
#include "unit/data/hashed_image.h"
#include "unit/fixtures.h"

namespace gallop::data::pixels {
namespace {

using nlohmann::json;

ImageShape shape_of(const json& size) { return {size[0], size[1], size[2]}; }

double degrees_of_slope(double slope) { return std::atan(slope) * (180 / std::numbers::pi); }

// The warps of the fixture, which are those of torchvision's policies, and its `affine`.
Operation warp(const json& one, const ImageShape& shape) {
  const std::string name = one.at("name");
  const auto value = one.at("parameters").get<std::vector<double>>();
  const auto fill = one.at("fill").get<std::vector<double>>();
  const auto mode =
      one.at("interpolation") == "bilinear" ? Interpolation::kBilinear : Interpolation::kNearest;
  if (name == "rotate") return rotation(value[0], shape.height, shape.width, mode, fill);
  if (name == "perspective") {
    std::array<Point, 4> corners{};
    for (size_t i = 0; i < 4; ++i) {
      const int x = static_cast<int>(value[2 * i] * (shape.width / 2));
      const int y = static_cast<int>(value[2 * i + 1] * (shape.height / 2));
      corners[i] = {i == 1 || i == 2 ? shape.width - 1 - x : x, i >= 2 ? shape.height - 1 - y : y};
    }
    return Perspective{
        .coefficients = perspective_coefficients(corners, shape.height, shape.width).value(),
        .interpolation = mode,
        .fill = fill};
  }
  AffineParameters affine;
  if (name == "affine") {
    affine = {.angle = value[0],
              .translate = {value[1], value[2]},
              .scale = value[3],
              .shear = {value[4], value[5]}};
  } else if (name.starts_with("shear")) {
    affine.shear[name == "shear-y"] = degrees_of_slope(value[0]);
    affine.has_center = true;
  } else {
    affine.translate[name == "translate-y"] = std::trunc(value[0]);
  }
  return Warp{.matrix = affine_matrix(affine, shape.height, shape.width),
              .interpolation = mode,
              .fill = fill};
}

Operation operation_of(const json& one, const ImageShape& shape) {
  const std::string name = one.at("name");
  if (one.contains("interpolation")) return warp(one, shape);
  if (name == "invert") return Invert{};
  if (name == "autocontrast") return AutoContrast{};
  if (name == "equalize") return Equalize{};
  if (name == "grayscale") return Grayscale{};
  if (name == "gaussian-blur") {
    const json& sizes = one.at("parameters");
    return GaussianBlur{sizes[0], sizes[1], sizes[2], sizes[3]};
  }
  const double value = one.at("parameters")[0];
  if (name == "brightness") return Brightness{value};
  if (name == "saturation") return Saturation{value};
  if (name == "contrast") return Contrast{value};
  if (name == "sharpness") return Sharpness{value};
  if (name == "hue") return Hue{value};
  if (name == "posterize") return Posterize{static_cast<int>(value)};
  if (name == "solarize") return Solarize{value};
  throw std::runtime_error("no operation " + name);
}

std::vector<uint8_t> applied(PixelEditor& editor, const std::vector<Operation>& operations,
                             const ImageShape& shape, const std::vector<uint8_t>& image) {
  const uint8_t* const result = editor.apply(operations, shape, image.data());
  return {result, result + image.size()};
}

std::string hex(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) {
    for (const int digit : {byte / 16, byte % 16}) text += "0123456789abcdef"[digit];
  }
  return text;
}

TEST(PixelEditor, EqualsTorchvisionInEveryPixel) {
  const json fixture = json::parse(read_file(fixtures() / "pixels.json"));
  const json& sizes = fixture.at("sizes");
  ASSERT_EQ(sizes.size(), 20u);
  ASSERT_GT(fixture.at("cases").size(), 100u);
  PixelEditor editor;
  for (const json& one : fixture.at("cases")) {
    const std::string text = json{one.at("name"), one.at("parameters"),
                                  one.value("interpolation", ""), one.value("fill", json::array())}
                                 .dump();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ImageShape shape = shape_of(sizes[i]);
      if (one.at("crc32")[i].is_null()) continue;  // Not for images of this size.
      const auto result = applied(editor, {operation_of(one, shape)}, shape,
                                  hashed_image(static_cast<int>(i), shape));
      for (size_t k = 0; k < fixture.at("shown").size(); ++k) {
        if (fixture.at("shown")[k] == i) {
          EXPECT_EQ(hex(result), one.at("shown")[k]) << text;
        }
      }
      const auto sum = crc32(0, result.data(), static_cast<uInt>(result.size()));
      EXPECT_EQ(sum, one.at("crc32")[i].get<uint32_t>()) << text << " of " << sizes[i].dump();
    }
  }
}

const ImageShape kShape{37, 41, 3};

// All operations, those that are tables twice in a row.
std::vector<Operation> all_operations(const ImageShape& shape) {
  const Warp turned{.matrix = affine_matrix({.angle = 20}, shape.height, shape.width),
                    .fill = {130}};
  Warp smooth = turned;
  smooth.interpolation = Interpolation::kBilinear;
  return {Brightness{1.3},
          Solarize{100},
          turned,
          Contrast{0.6},
          AutoContrast{},
          Equalize{},
          Invert{},
          Saturation{1.4},
          Posterize{5},
          Sharpness{1.7},
          Equalize{},
          Equalize{},
          Hue{0.1},
          AutoContrast{},
          smooth,
          Brightness{0.7},
          Contrast{1.5},
          QuarterTurns{2},
          Grayscale{},
          Invert{},
          GaussianBlur{5, 3, 1.2, 0.8},
          Invert{},
          Perspective{.coefficients = {1.1F, 0.1F, 2, 0, 0.9F, 1, 1e-3F, 2e-3F}, .fill = {9}},
          turned,
          turned,
          Contrast{0.5},
          AutoContrast{},
          Sharpness{0.3}};
}

TEST(PixelEditor, ComposesOperationsExactly) {
  for (const int channels : {1, 3}) {
    const ImageShape shape{kShape.height, kShape.width, channels};
    const auto operations = all_operations(shape);
    PixelEditor at_once, one_by_one;
    for (size_t first = 0; first < operations.size(); ++first) {
      auto image = hashed_image(2, shape);
      const std::vector<Operation> some(operations.begin() + static_cast<ptrdiff_t>(first),
                                        operations.end());
      const auto composed = applied(at_once, some, shape, image);
      for (const Operation& operation : some)
        image = applied(one_by_one, {operation}, shape, image);
      EXPECT_EQ(composed, image) << first;
    }
  }
}

TEST(PixelEditor, LeavesTheSourceAlone) {
  const auto image = hashed_image(0, kShape);
  PixelEditor editor;
  for (const Operation& operation : all_operations(kShape)) {
    auto source = image;
    editor.apply({{operation}}, kShape, source.data());
    EXPECT_EQ(source, image);
  }
  EXPECT_EQ(editor.apply({}, kShape, image.data()), image.data());
}

TEST(PixelEditor, MixesChains) {
  const auto image = hashed_image(0, kShape);
  PixelEditor editor;
  const auto inverted = applied(editor, {Invert{}}, kShape, image);
  const auto solarized = applied(editor, {Solarize{90}, Invert{}}, kShape, image);
  const Mix mix{.original = 0.25F,
                .chains = {{.weight = 0.45F, .operations = {Invert{}}},
                           {.weight = 0.3F, .operations = {Solarize{90}, Invert{}}}}};
  const auto mixed = applied(editor, {mix, Posterize{8}}, kShape, image);
  for (size_t i = 0; i < image.size(); ++i) {
    float sum = 0.25F * static_cast<float>(image[i]);
    sum += 0.45F * static_cast<float>(inverted[i]);
    sum += 0.3F * static_cast<float>(solarized[i]);
    ASSERT_EQ(mixed[i], static_cast<uint8_t>(sum)) << i;
  }
}

TEST(PixelEditor, TurnsByQuarters) {
  PixelEditor editor;
  const std::vector<uint8_t> image{1, 2, 3, 4};
  const ImageShape shape{2, 2, 1};
  EXPECT_EQ(applied(editor, {QuarterTurns{1}}, shape, image), (std::vector<uint8_t>{2, 4, 1, 3}));
  EXPECT_EQ(applied(editor, {QuarterTurns{3}}, shape, image), (std::vector<uint8_t>{3, 1, 4, 2}));
  EXPECT_THROW(editor.apply({{QuarterTurns{1}}}, {1, 4, 1}, image.data()), InternalError);
  EXPECT_THROW(editor.apply({{Warp{.fill = {1, 2}}}}, shape, image.data()), InternalError);
}

TEST(PixelLoops, AgreeBitForBit) {
  const PixelLoops plain = portable_pixel_loops(), best = best_pixel_loops();
  for (const int64_t pixels : {1, 3, 63, 64, 65, 200}) {
    const auto rgb = hashed_image(0, {3, static_cast<int>(pixels), 3});
    const auto bytes = static_cast<size_t>(3 * pixels);
    EXPECT_EQ(plain.gray_sum(rgb.data(), pixels), best.gray_sum(rgb.data(), pixels));
    const auto same = [&](const auto& map) {
      std::vector<uint8_t> a(bytes, 7), b(bytes, 9);
      map(plain, a.data());
      map(best, b.data());
      EXPECT_EQ(a, b) << pixels;
    };
    same([&](const PixelLoops& loops, uint8_t* out) { loops.grayscale(rgb.data(), pixels, out); });
    same([&](const PixelLoops& loops, uint8_t* out) {
      loops.saturate(rgb.data(), pixels, 1.3F, -0.3F, out);
    });
    same([&](const PixelLoops& loops, uint8_t* out) {
      loops.turn_hue(rgb.data(), pixels, -0.3F, out);
    });
    same([&](const PixelLoops& loops, uint8_t* out) {
      std::fill_n(out, bytes, uint8_t{0});
      if (pixels < 3) return;
      loops.sharpen(&rgb[3], &rgb[bytes + 3], &rgb[2 * bytes + 3], 3 * pixels - 6, 3, -0.7F,
                    out + 3);
    });
    same([&](const PixelLoops& loops, uint8_t* out) {
      std::fill_n(out, bytes, uint8_t{0});
      std::array<uint8_t, 3> low, high;
      loops.extremes(rgb.data(), pixels, 3, low.data(), high.data());
      for (size_t c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(low[c] ^ (3 * high[c]));
    });
  }
}

TEST(PixelLoops, WarpAlikeOnAllCpus) {
  const PixelLoops plain = portable_pixel_loops(), best = best_pixel_loops();
  const WarpRow row{.from_x = {0.013F, 0.004F, 0.2F},
                    .from_y = {-0.006F, 0.017F, -0.1F},
                    .y = 11.5F,
                    .height = 90,
                    .width = 133};
  const auto warped = [&](const PixelLoops& loops) {
    std::vector<int32_t> index(5 * 133);
    std::vector<float> numbers(3 * 133);
    loops.nearest(row, index.data());
    loops.corners(row, {.top_left = &index[133],
                        .top_right = &index[266],
                        .bottom_left = &index[399],
                        .bottom_right = &index[532],
                        .right = numbers.data(),
                        .bottom = &numbers[133]});
    const auto bytes = hashed_image(0, {4, 133, 1});
    loops.interpolate({.top_left = bytes.data(),
                       .top_right = &bytes[133],
                       .bottom_left = &bytes[266],
                       .bottom_right = &bytes[399],
                       .right = numbers.data(),
                       .bottom = &numbers[133]},
                      133, &numbers[266]);
    loops.fill_outside(numbers.data(), 100.5F, 133, &numbers[266]);
    std::vector<uint8_t> rounded(133);
    loops.round(&numbers[266], 133, rounded.data());
    index.insert(index.end(), rounded.begin(), rounded.end());
    loops.accumulate(bytes.data(), 133, 0.37F, &numbers[266]);
    return std::pair(index, numbers);
  };
  EXPECT_EQ(warped(plain), warped(best));
}

}  // namespace
}  // namespace gallop::data::pixels

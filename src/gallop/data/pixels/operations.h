#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

/// Operations on the pixels of 8-bit images of 1 or 3 interleaved channels. Each equals the
/// function of torchvision 0.26 `transforms.v2.functional` of the same name on uint8 tensors on a
/// CPU, in every pixel. They only describe what to do; PixelEditor does it.
namespace gallop::data::pixels {

/// Multiplies all values by `factor`, at least 0. torchvision: adjust_brightness.
struct Brightness {
  double factor = 1;
};

/// Blends each pixel with its gray; 0 is gray, 1 the original. torchvision: adjust_saturation.
struct Saturation {
  double factor = 1;
};

/// Blends with the mean gray of the image. torchvision: adjust_contrast.
struct Contrast {
  double factor = 1;
};

/// Blends with a 3 x 3 blur; the outermost pixels stay. torchvision: adjust_sharpness.
struct Sharpness {
  double factor = 1;
};

/// Turns the hue by `factor`, in -0.5 to 0.5, of a whole turn. torchvision: adjust_hue.
struct Hue {
  double factor = 0;
};

/// Keeps the upper `bits`, 0 to 8. torchvision: posterize.
struct Posterize {
  int bits = 8;
};

/// Inverts values from `threshold` on. torchvision: solarize.
struct Solarize {
  double threshold = 255;
};

/// Adds `addend` to values below `threshold`, up to 255. timm: solarize_add.
struct SolarizeAdd {
  int addend = 0;
  int threshold = 128;
};

/// torchvision: invert.
struct Invert {};

/// Stretches each channel to 0..255. torchvision: autocontrast.
struct AutoContrast {};

/// Equalizes the histogram of each channel. torchvision: equalize.
struct Equalize {};

/// Converts to gray and keeps the number of channels. torchvision: rgb_to_grayscale.
struct Grayscale {};

/// Turns the image counterclockwise by whole quarters; odd numbers are for square images.
struct QuarterTurns {
  int count = 0;
};

/// Convolves with a Gaussian of odd sizes and of standard deviations in pixels, at borders with the
/// mirrored image. torchvision: gaussian_blur. Each half of the kernel must be shorter than the
/// image's side.
struct GaussianBlur {
  int kernel_width = 3, kernel_height = 3;
  double sigma_x = 1, sigma_y = 1;
};

enum class Interpolation { kNearest, kBilinear };

/// An affine warp that keeps the size: output (x, y), measured from the image's center, is the
/// source at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]). torchvision: affine, rotate.
struct Warp {
  std::array<double, 6> matrix{1, 0, 0, 0, 1, 0};
  Interpolation interpolation = Interpolation::kNearest;
  /// The value outside the source: of all channels, of each, or nothing, which is black. Black by a
  /// fill of 0 differs in bilinear warps, where torchvision weights border pixels twice.
  std::vector<double> fill;
};

/// A perspective warp that keeps the size: with the centers of pixels at (x + 0.5, y + 0.5), output
/// (x, y) is the source at (c[0] x + c[1] y + c[2], c[3] x + c[4] y + c[5]) / (c[6] x + c[7] y +
/// 1). Interpolation and fill are those of Warp. torchvision: perspective.
struct Perspective {
  std::array<float, 8> coefficients{1, 0, 0, 0, 1, 0, 0, 0};
  Interpolation interpolation = Interpolation::kBilinear;
  std::vector<double> fill;
};

struct Chain;

/// AugMix (Hendrycks et al., 2020): a weighted sum of the image and of chains of operations on it.
struct Mix {
  float original = 1;
  std::vector<Chain> chains;
  /// As in timm: the sum, in whole numbers, is blended with the image by this factor.
  std::optional<float> blended{};
};

using Operation = std::variant<Brightness, Saturation, Contrast, Sharpness, Hue, Posterize,
                               Solarize, SolarizeAdd, Invert, AutoContrast, Equalize, Grayscale,
                               GaussianBlur, QuarterTurns, Warp, Perspective, Mix>;

struct Chain {
  float weight = 0;
  std::vector<Operation> operations;
};

/// The parameters of torchvision's `affine`; lengths are in pixels, angles in degrees. Without a
/// center, it is the image's; (0, 0) is the corner on the top left.
struct AffineParameters {
  double angle = 0;
  std::array<double, 2> translate{};
  double scale = 1;
  std::array<double, 2> shear{};
  bool has_center = false;
  std::array<double, 2> center{};
};

/// The matrix of Warp for images of this size.
std::array<double, 6> affine_matrix(const AffineParameters& affine, int height, int width);

/// A point [x, y].
using Point = std::array<int, 2>;
/// The coefficients of the perspective that moves the corners of an image, on the top left, top
/// right, bottom right and bottom left, to these points; nothing if there is none.
std::optional<std::array<float, 8>> perspective_coefficients(const std::array<Point, 4>& corners,
                                                             int height, int width);

/// torchvision's `rotate` by `degrees` counterclockwise around the image's center: a copy where the
/// turn is exact, otherwise a warp.
Operation rotation(double degrees, int height, int width, Interpolation interpolation,
                   const std::vector<double>& fill);

}  // namespace gallop::data::pixels

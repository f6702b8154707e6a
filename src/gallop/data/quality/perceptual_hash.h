#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gallop/data/image.h"

namespace gallop::data {

inline constexpr int kHashedSide = 32;
/// Gray values of 32 x 32 pixels.
using HashedPixels = std::array<uint8_t, size_t{kHashedSide} * kHashedSide>;

/// An image as gray values of 32 x 32 pixels: 0.299 R + 0.587 G + 0.114 B in integer arithmetic,
/// resized by a triangle filter.
HashedPixels hashed_pixels(const Image& image);

/// pHash (Zauner, 2010): bit 8 r + c says whether coefficient (r, c) of the discrete cosine
/// transform of `gray` is above the median of the 8 x 8 lowest ones. Re-encoded and resized images,
/// and those of other brightness or contrast, differ in few bits. Equal to phash() of the Python
/// package imagehash for the same pixels.
uint64_t perceptual_hash(const HashedPixels& gray);

/// The image with left and right exchanged.
HashedPixels mirror(const HashedPixels& gray);

}  // namespace gallop::data

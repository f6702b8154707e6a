#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// The header of a GIF file, up to the pixels of its first image.
struct GifLayout {
  int height = 0, width = 0;   ///< Of the screen; larger if the first image extends beyond it.
  Region frame;                ///< The place of the first image on the screen.
  std::string_view palette;    ///< Red, green, blue of each color; empty: the grays.
  int background = 0;          ///< The color of the screen outside the first image.
  bool is_interlaced = false;  ///< The rows are in four passes.
  size_t pixels = 0;           ///< Where the compressed pixels begin.
  bool is_complete = false;    ///< Whether the bytes contain all of this.

  bool is_gray() const;
};

/// Throws DataError if the file is damaged.
GifLayout read_gif_layout(std::string_view file);

/// Decoder of the first image of GIF files.
class GifDecoder {
 public:
  void decode(std::string_view file, const DecodeRequest& request, Image& image);

 private:
  void place_frame(const GifLayout& layout);

  std::vector<uint8_t> frame_, screen_;  // Indices of colors.
};

}  // namespace gallop::data

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop::benchmark {

/// Writes `count` JPEG files of 500 x 375 pixels at quality 90 to FOLDER/train/CLASS/NAME.jpg, in
/// ten classes. Each is smooth noise on several scales, edges and fine grain, so that it compresses
/// about as well as a photograph. The same on every call.
void make_photos(const std::string& folder, int64_t count);

}  // namespace gallop::benchmark

#pragma once

#include <string>
#include <vector>

#include "gallop/data/data_config.h"
#include "gallop/data/dataset.h"
#include "gallop/data/image_summary.h"

namespace gallop::data {

/// The shape that all images of all parts are brought to: `data.image_size` squared where given,
/// else the size that all have; `data.channels` where given, else 3 where any image is in color.
/// Adds to `notes` what is converted. Throws DataError where images differ in size and are not to
/// be resized, where one cannot be read and none may be skipped, or where none can.
ImageShape shape_of_set(const ImageParts& parts, const DataConfig& config, int threads,
                        const SummaryCache& cache, std::vector<std::string>& notes);

}  // namespace gallop::data

#pragma once

#include <string>
#include <vector>

#include "gallop/data/data_config.h"
#include "gallop/data/dataset.h"
#include "gallop/data/image_summary.h"

namespace gallop::data {

/// The shape to which all images of all splits are converted: `data.image_size` squared if given,
/// otherwise their common size; `data.channels` if given, otherwise 3 if any image is in color.
/// Conversions are added to `notes`. Throws DataError if sizes differ without resizing, if an image
/// cannot be read and none may be skipped, or if none can be read.
ImageShape shape_of_set(const ImageParts& parts, const DataConfig& config, int threads,
                        const SummaryCache& cache, std::vector<std::string>& notes);

}  // namespace gallop::data

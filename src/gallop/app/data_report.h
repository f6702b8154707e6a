#pragma once

#include <string>

#include "gallop/app/report_page.h"
#include "gallop/base/file.h"
#include "gallop/data/quality/data_quality.h"

namespace gallop::app {

/// Writes report.json, report.html with pictures, and for each finding a file of names for
/// `data.exclude`, KIND.txt, into a folder that prepare_report_folder() has created. Replaces an
/// earlier report. Throws DeviceError.
void write_data_report(const fs::path& folder, const data::DataQuality& quality,
                       const std::string& recipe);

/// A finding in a report: its text, the lines of a recipe that act on it, and the first pictures.
/// `folder` has its file of names.
ReportPage::Section section_of(const data::QualityFinding& finding, const fs::path& folder);

/// Writes the file of a finding's names for `data.exclude`. Throws DeviceError.
void write_excluded(const fs::path& folder, const data::QualityFinding& finding);

}  // namespace gallop::app

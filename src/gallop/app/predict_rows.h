#pragma once

#include <string>

#include "gallop/app/trained_model.h"
#include "gallop/data/samples.h"

namespace gallop::app {

/// Predicts the rows of a table in batches and writes them to a CSV file: the line of each row, its
/// predicted numbers, labels or class, and probabilities.
void write_predicted_rows(TrainedModel& run, const data::Samples& rows, const std::string& file);

}  // namespace gallop::app

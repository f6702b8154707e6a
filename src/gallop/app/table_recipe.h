#pragma once

#include <string>

namespace gallop::app {

/// Whether the name of a recipe is that of a table, by its ending, or of a folder with such files
/// or their shards.
bool is_table(const std::string& name_or_path);

/// "houses" of "data/houses.csv.gz".
std::string name_of_table(const std::string& path);

/// The recipe to train on a table: YAML whose batch size and number of epochs suit its size.
/// Throws DataError if it cannot be read.
std::string table_recipe(const std::string& path);

}  // namespace gallop::app

#include "gallop/data/table_schema.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/table/encoder.h"
#include "gallop/data/table/target_task.h"

namespace gallop::data {

namespace {

using Names = std::vector<std::string>;

bool is_in(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class SchemaFinder {
 public:
  SchemaFinder(TableReader& file, const TableConfig& config, const DataContext& context,
               const Signature* trained)
      : file_(file), config_(config), context_(context), trained_(trained) {}

  TableSchema find() {
    check_names();
    choose_targets();
    check_roles();
    const std::vector<ColumnScan>& scans = file_.scan();
    choose_task_of(scans);
    for (size_t i = 0; i < file_.names().size(); ++i) {
      const std::string& name = file_.names()[i];
      if (name.empty() || is_in(config_.ignore, name) || is_in(schema_.targets, name)) continue;
      if (name == config_.weight) {
        add(name, {.kind = ColumnKind::kNumber,
                   .number_format = scans[i].type.number_format,
                   .is_required = true});
      } else if (name == group()) {
        // It says to whom a row belongs, not what the row is.
        add(name, {.kind = ColumnKind::kCategory, .is_required = true});
      } else {
        schema_.features.push_back(name);
        add(name, type_of(name, scans[i]));
      }
    }
    if (schema_.features.empty()) {
      throw DataError(printable(file_.file()) + ": has no column besides the targets");
    }
    for (const std::string& name : schema_.targets) {
      const ColumnScan& scan = scans[file_.find(name)];
      ColumnKind kind =
          scan.type.kind == ColumnKind::kBoolean ? ColumnKind::kBoolean : ColumnKind::kNumber;
      if (schema_.task == "classification") kind = ColumnKind::kCategory;
      add(name, {.kind = kind, .number_format = scan.type.number_format, .is_required = true});
    }
    return std::move(schema_);
  }

 private:
  const std::string& group() const { return context_.config.group; }

  void add(const std::string& name, const ColumnType& type) {
    schema_.names.push_back(name);
    schema_.types.push_back(type);
  }

  void check_names() {
    for (const Names* const names :
         {&config_.ignore, &config_.numbers, &config_.categories, &config_.dates}) {
      for (const std::string& name : *names) file_.find(name);
    }
    if (trained_ != nullptr) {
      for (const std::string& name : trained_->columns) file_.find(name);
    }
    if (!config_.weight.empty()) file_.find(config_.weight);
    if (group().empty()) return;
    if (!is_in(file_.names(), group())) {
      throw UsageError(
          fmt::format("data.group is '{}', and must be one of the columns of the table: {}",
                      printable(group()), printable(join_names(file_.names(), "and"))));
    }
  }

  void choose_targets() {
    if (!config_.target.empty() && !config_.targets.empty()) {
      throw UsageError("data.target and data.targets are both set; use one of them");
    }
    schema_.targets = config_.target.empty() ? config_.targets : Names{config_.target};
    if (schema_.targets.empty()) {
      schema_.targets = {last_column()};
      if (!config_.numbers_only) {
        schema_.notes.push_back(
            fmt::format("data.target is not set, so the last column, '{}', is predicted",
                        printable(schema_.targets[0])));
      }
    }
  }

  // The last of the columns that no option names for something else.
  const std::string& last_column() const {
    const Names& names = file_.names();
    const auto last = std::find_if(names.rbegin(), names.rend(), [&](const std::string& name) {
      return !name.empty() && name != config_.weight && name != group() &&
             !is_in(config_.ignore, name);
    });
    if (last != names.rend()) return *last;
    throw UsageError(
        "data.ignore, data.weight and data.group leave no column to predict; set data.target");
  }

  // Targets, weights and groups are different columns, which must be read.
  void check_roles() const {
    const char* const target = config_.target.empty() ? "data.targets" : "data.target";
    for (const std::string& name : schema_.targets) check_is_read(target, name);
    const std::pair<const char*, std::string> others[] = {{"data.weight", config_.weight},
                                                          {"data.group", group()}};
    for (const auto& [option, name] : others) {
      if (name.empty()) continue;
      check_is_read(option, name);
      if (!is_in(schema_.targets, name)) continue;
      throw UsageError(fmt::format("{}: the column '{}' is the target; name another column", option,
                                   printable(name)));
    }
    if (!group().empty() && group() == config_.weight) {
      throw UsageError(fmt::format(
          "data.group: the column '{}' is data.weight; name another column", printable(group())));
    }
  }

  void check_is_read(const char* option, const std::string& name) const {
    if (!is_in(config_.ignore, name)) return;
    throw UsageError(fmt::format(
        "{}: the column '{}' is in data.ignore; omit it there, because it is not an input anyway",
        option, printable(name)));
  }

  void choose_task_of(const std::vector<ColumnScan>& scans) {
    if (trained_ != nullptr) {
      schema_.task = trained_->task;
      return;
    }
    std::vector<const ColumnScan*> targets;
    for (const std::string& name : schema_.targets) targets.push_back(&scans[file_.find(name)]);
    schema_.classes = file_.classes(file_.find(schema_.targets[0]));
    const std::string natural = natural_task(targets, config_.numbers_only);
    const bool was_number = targets[0]->type.kind == ColumnKind::kNumber;
    if (natural == "classification" && was_number && context_.config.task == "auto") {
      schema_.notes.push_back(fmt::format(
          "target '{}' has the values {}, which are taken as classes; data.task: regression takes "
          "them as numbers",
          printable(schema_.targets[0]), join_names(sorted_values(targets[0]->distinct), "and")));
    }
    std::vector<std::string> tasks = {natural};
    for (const char* task : {"regression", "count-regression", "classification", "multi-label"}) {
      if (natural != task) tasks.emplace_back(task);
    }
    schema_.task = choose_task(context_.config, tasks);
    if (schema_.task == "classification" && schema_.targets.size() != 1) {
      throw UsageError(
          fmt::format("data.task: classification predicts one column, but data.targets names {}",
                      schema_.targets.size()));
    }
  }

  ColumnType type_of(const std::string& name, const ColumnScan& scan) {
    if (trained_ != nullptr) {
      for (const TableFeature& feature : trained_->features) {
        if (feature.column == name) return column_type(feature);
      }
      return {.kind = ColumnKind::kIgnored};
    }
    const std::string& format = scan.type.number_format;
    if (config_.numbers_only) {
      return {.kind = ColumnKind::kNumber, .number_format = format, .is_required = true};
    }
    if (is_in(config_.numbers, name)) {
      return {.kind = ColumnKind::kNumber, .number_format = format};
    }
    if (is_in(config_.categories, name)) return {.kind = ColumnKind::kCategory};
    ColumnType type = scan.type;
    if (is_in(config_.dates, name)) {
      type = {.kind = ColumnKind::kDate, .date_format = scan.date_format};
    } else if (!scan.mistake.empty()) {
      if (context_.config.on_error != "skip") throw DataError(scan.mistake);
      type = scan.likely;
    }
    if (type.kind == ColumnKind::kDate && scan.has_ambiguous_dates) {
      schema_.notes.push_back(
          fmt::format("the dates of column '{}' may begin with the month or the day; the {} is "
                      "taken (data.day_first)",
                      printable(name), config_.day_first ? "day" : "month"));
    }
    return type;
  }

  TableReader& file_;
  const TableConfig& config_;
  const DataContext& context_;
  const Signature* trained_;
  TableSchema schema_;
};

}  // namespace

TableSchema find_schema(TableReader& file, const TableConfig& config, const DataContext& context,
                        const Signature* trained) {
  return SchemaFinder(file, config, context, trained).find();
}

}  // namespace gallop::data

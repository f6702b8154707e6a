#include "gallop/compile/codegen/cuda_source.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/compile/codegen/cuda_text.h"
#include "gallop/compile/codegen/embedded_headers.h"
#include "gallop/compile/codegen/op_traits.h"

namespace gallop::compile {

namespace {

/// Writes the text of one plan.
class Writer : CudaText {
 public:
  explicit Writer(const CudaPlan& plan) : CudaText(plan) {}

  std::string text() {
    line("namespace gallop_cuda {{");
    line("namespace SYMBOL_space {{");
    line("struct Slots {{ unsigned long long slots[{}]; }};", slots_.count);
    line("using Index = {};", plan_.long_index ? "Int64" : "int");
    line("constexpr int kWidth = {};", plan_.width);
    write_body();
    if (!loop_.column_reductions.empty()) write_columns_body();
    if (!loop_.totals.empty()) write_totals_body();
    line("}}");
    const auto threads = [](uint32_t across, uint32_t down = 1) {
      return std::to_string(across * down);
    };
    std::string bounds = threads(plan_.block[0], plan_.block[1]);
    // Without a bound, the compiler saves registers by delaying loads to where they are needed.
    if (plan_.turns > 1) bounds += fmt::format(", {}", plan_.resident);
    write_kernel("SYMBOL", "body<false>", bounds);
    if (plan_.width > 1) write_kernel("SYMBOL_aligned", "body<true>", bounds);
    if (!loop_.column_reductions.empty()) {
      write_kernel("SYMBOL_columns", "columns_body",
                   threads(plan_.last_block[0], plan_.last_block[1]));
    }
    if (!loop_.totals.empty()) {
      write_kernel("SYMBOL_totals", "totals_body", threads(plan_.total_block));
    }
    line("}}");
    return std::move(text_);
  }

 private:
  void write_body() {
    written_.assign(loop_.values.size(), false);
    line("template <bool kAligned>");
    open("__device__ __forceinline__ void body(const Slots& a) {{");
    declare_arguments();
    std::vector<bool> needed(loop_.values.size());
    for (size_t i = 0; i < needed.size(); ++i) needed[i] = loop_.values[i].level == Level::kAll;
    write_values_for_all(needed);
    for (const int32_t at : loop_.totals) {
      line("Total<{}, {}> t{};", reduction(at), kind_of_value(at), at);
    }
    if (!loop_.totals.empty()) line("int total_turn = 0;");
    switch (plan_.form) {
      case CudaPlan::Form::kPointwise: write_pointwise(); break;
      case CudaPlan::Form::kRows: write_rows(); break;
      case CudaPlan::Form::kColumns: write_columns(); break;
      case CudaPlan::Form::kBoth: write_both(); break;
    }
    write_block_totals();
    close();
  }

  void write_block_totals() {
    if (loop_.totals.empty()) return;
    line("__shared__ double total_shared[{}];", plan_.block[0] * plan_.block[1] / 32);
    for (const int32_t at : loop_.totals) {
      line("const {0} all{1} = join_block<{2}>(t{1}.total(), total_shared);", part_type(at), at,
           reduction(at));
    }
    open("if (threadIdx.x == 0 && threadIdx.y == 0) {{");
    for (const int32_t at : loop_.totals) {
      line("total{0}[blockIdx.y * gridDim.x + blockIdx.x] = all{0};", at);
    }
    close();
  }

  // A thread's turns are in the same columns of other rows, or in other columns of the only row.
  void write_pointwise() {
    const bool one_row = loop_.rows == 1;
    const char* all = one_row ? "groups" : "rows";
    line("constexpr int kTurns = {};", plan_.turns);
    line("const Index share = ({} + kTurns - 1) / kTurns;", all);
    line("const Index step = static_cast<Index>(gridDim.x) * blockDim.x;");
    open(
        "for (Index at = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; at < "
        "share{}; at += step) {{",
        one_row ? "" : " * groups");
    line("const Index first = at{};", one_row ? "" : " / by_groups");
    if (one_row) {
      line("constexpr Index row = 0;");
    } else {
      line("const Index group = at - first * groups;");
      write_positions("group", /*is_group=*/true);
      write_shared_loads();
    }
    const auto start = [&] {
      // Where there is no other turn, the first one is repeated: it is loaded before it is stored.
      line("const Index next = first + turn * share;");
      line("const Index {} = next < {} ? next : first;", one_row ? "group" : "row", all);
      if (one_row) write_positions("group", /*is_group=*/true);
    };
    write_turns(start, [] {});
    close();
  }

  // Writes a sweep over the row by all its threads.
  void write_sweep(int sweep) {
    write_row_numbers(slice_of(loop_, sweep));
    std::vector<int32_t> rows, columns;
    for (const int32_t at : loop_.row_reductions) {
      if (value(expression(at).arguments[0]).depth == sweep) rows.push_back(at);
    }
    for (const int32_t at : loop_.column_reductions) {
      if (value(expression(at).arguments[0]).depth == sweep) columns.push_back(at);
    }
    for (const int32_t at : rows) {
      line("Total<{}, {}> c{};", reduction(at), kind_of_value(at), at);
    }
    if (!rows.empty()) line("int turn{} = 0;", sweep);
    open("for (Index group = threadIdx.x; group < groups; group += blockDim.x) {{");
    write_positions("group", /*is_group=*/true);
    write_group(sweep, [&] {
      for (const int32_t at : rows) line("c{}.add(v{});", at, expression(at).arguments[0]);
      for (const int32_t at : columns) {
        line("part{0}[{1}] = {2}::join(part{0}[{1}], v{3});", at, place(), reduction(at),
             expression(at).arguments[0]);
      }
    });
    if (!rows.empty()) {
      open("if (++turn{} % (32 / kWidth) == 0) {{", sweep);
      for (const int32_t at : rows) line("c{}.close_part();", at);
      close();
    }
    close();
    for (const int32_t at : rows) {
      line("const {0} v{1} = join_row<{2}>(c{1}.result(), row_shared);", kind_of_value(at), at,
           reduction(at));
      written_[static_cast<size_t>(at)] = true;
    }
  }

  // Writes all code for `row`.
  void write_row() {
    write_row_start();
    for (int sweep = 0; sweep < loop_.sweeps; ++sweep) write_sweep(sweep);
    bool stores = false;
    for (size_t i = 0; i < loop_.stores.size(); ++i) {
      if (loop_.stores[i] != Level::kRow) continue;
      write_row_number(program_.outputs[i].value);
      stores = true;
    }
    if (!stores) return;
    // An output may share memory with an input that other threads have not read yet.
    line("wait_for_row();");
    open("if (threadIdx.x == 0) {{");
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kRow) continue;
      line("write(*row_{}, v{});", array.name, array.value);
    }
    close();
  }

  void write_rows() {
    line("__shared__ double row_shared[32];");
    open(
        "for (Index row = static_cast<Index>(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; "
        "row += static_cast<Index>(gridDim.x) * blockDim.y) {{");
    write_row();
    close();
  }

  void write_columns() {
    declare_column_shared(plan_.block, plan_.width);
    open(
        "for (Index tile = blockIdx.x; tile * static_cast<Index>(blockDim.x) < groups; tile += "
        "gridDim.x) {{");
    line("const Index wanted = tile * static_cast<Index>(blockDim.x) + threadIdx.x;");
    // Threads beyond the last group load what it has of all rows, and add nothing.
    line("const Index group = wanted < groups ? wanted : groups - 1;");
    for (const int32_t at : loop_.column_reductions) {
      line("Total<{}, {}> c{}[kWidth];", reduction(at), kind_of_value(at), at);
    }
    line("const Index first = static_cast<Index>(blockIdx.y) * block_rows;");
    line("const Index row_end = rows - first < block_rows ? rows : first + block_rows;");
    write_positions("group", /*is_group=*/true);
    write_shared_loads();
    line("int added = 0;");
    line("const Index down = static_cast<Index>(blockDim.y);");
    line("Index next = wanted < groups ? first + static_cast<Index>(threadIdx.y) : row_end;");
    write_column_rows(plan_.turns);
    if (plan_.turns > 1) write_column_rows(1);
    for (const int32_t at : loop_.column_reductions) {
      line("{} own{}[kWidth];", kind_of_value(at), at);
      line("for (int u = 0; u < kWidth; ++u) own{0}[u] = c{0}[u].result();", at);
      open("join_columns<{}>(own{}, column_shared, [&](Index at, {} all) {{", reduction(at), at,
           kind_of_value(at));
      line("const Index column = tile * static_cast<Index>(blockDim.x) * kWidth + at;");
      line("if (column < columns) total{}[blockIdx.y * columns + column] = all;", at);
      close("});");
    }
    close();
  }

  // Writes a thread's loop over its rows, as far as there are so many at once.
  void write_column_rows(int turns) {
    open("for (; next + {} * down < row_end; next += {} * down) {{", turns - 1, turns);
    line("constexpr int kTurns = {};", turns);
    written_.assign(loop_.values.size(), false);
    write_turns([&] { line("const Index row = next + turn * down;"); },
                [&] {
                  for (const int32_t at : loop_.column_reductions) {
                    line("c{}[u].add(v{});", at, expression(at).arguments[0]);
                  }
                });
    // Parts end where they do with one turn at a time, as 32 is a multiple of the number of turns.
    line("added += kTurns;");
    open("if (added % 32 == 0) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("for (int u = 0; u < kWidth; ++u) c{}[u].close_part();", at);
    }
    close();
    close();
  }

  // Places for join_columns of a block of this shape.
  void declare_column_shared(std::array<uint32_t, 2> block, int width) {
    int64_t widest = 0;
    for (const int32_t at : loop_.column_reductions) {
      widest = std::max(widest, bytes_of(value(at).kind));
    }
    const int64_t places = int64_t{block[0]} * block[1] / 32 * block[0] * width;
    line("__shared__ double column_shared[{}];", (places * widest + 7) / 8);
  }

  // The position of a column's sum: in shared memory, adjacent columns are apart, so that
  // adjacent threads access different banks.
  const char* place() const {
    return plan_.shared_columns > 0 ? "u * groups + group" : "group * kWidth + u";
  }

  void write_both() {
    line("__shared__ double row_shared[32];");
    for (const int32_t at : loop_.column_reductions) {
      if (plan_.shared_columns == 0) continue;
      line("__shared__ {} parts{}[{}];", kind_of_value(at), at,
           plan_.block[1] * plan_.shared_columns);
      line("auto* const part{0} = parts{0} + threadIdx.y * {1};", at, plan_.shared_columns);
    }
    open("for (Index block = blockIdx.x; block < blocks; block += gridDim.x) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("{0}* const block_total{1} = total{1} + block * columns;", kind_of_value(at), at);
      if (plan_.shared_columns == 0) line("auto* const part{0} = block_total{0};", at);
    }
    write_own_columns("{1}::start(part{0}[{2}]);");
    line("const Index first = block * block_rows;");
    line("const Index row_end = rows - first < block_rows ? rows : first + block_rows;");
    open(
        "for (Index row = first + static_cast<Index>(threadIdx.y); row < row_end; row += "
        "blockDim.y) {{");
    write_row();
    close();
    if (plan_.block[1] > 1) {
      write_joined_parts();
    } else if (plan_.shared_columns > 0) {
      write_own_columns("block_total{0}[group * kWidth + u] = part{0}[{2}];");
    }
    close();
  }

  // Joins the sums of all rows of threads.
  void write_joined_parts() {
    line("__syncthreads();");
    open(
        "for (Index column = static_cast<Index>(threadIdx.y * blockDim.x + threadIdx.x); column < "
        "columns; column += blockDim.x * blockDim.y) {{");
    line("const Index at = column % kWidth * groups + column / kWidth;");
    for (const int32_t at : loop_.column_reductions) {
      line("{0} all{1} = parts{1}[at];", kind_of_value(at), at);
      line("for (int y = 1; y < {0}; ++y) all{1} = {2}::join(all{1}, parts{1}[y * {3} + at]);",
           plan_.block[1], at, reduction(at), plan_.shared_columns);
      line("block_total{0}[column] = all{0};", at);
    }
    close();
    line("__syncthreads();");
  }

  // Writes a line for each column reduction and each column that the thread owns.
  void write_own_columns(const char* format) {
    open("for (Index group = threadIdx.x; group < groups; group += blockDim.x) {{");
    open("for (int u = 0; u < kWidth; ++u) {{");
    for (const int32_t at : loop_.column_reductions) {
      line("{}", fmt::format(fmt::runtime(format), at, reduction(at), place()));
    }
    close();
    close();
  }

  // Threads above each other process some of the blocks each.
  void write_columns_body() {
    const std::vector<bool> needed = made_late(loop_, Level::kColumn);
    open("__device__ __forceinline__ void columns_body(const Slots& a) {{");
    declare_arguments();
    write_values_for_all(needed);
    declare_column_shared(plan_.last_block, 1);
    open(
        "for (Index tile = blockIdx.x; tile * static_cast<Index>(blockDim.x) < columns; tile += "
        "gridDim.x) {{");
    line("const Index column = tile * static_cast<Index>(blockDim.x) + threadIdx.x;");
    for (const int32_t at : loop_.column_reductions) {
      if (needed[static_cast<size_t>(at)]) write_blocks(at);
    }
    open("if (threadIdx.y == 0 && column < columns) {{");
    write_positions("column", /*is_group=*/false);
    line("constexpr int u = 0;");
    for (int32_t at = 0; at < expressions(); ++at) {
      if (!needed[static_cast<size_t>(at)] || is_column_reduction(expression(at).op)) continue;
      if (value(at).level == Level::kAll) continue;
      write_value(at, [this](const Array& array) {
        return fmt::format("read(*({}{}))", array.name, offset_in_row(array));
      });
    }
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kColumn) continue;
      line("write(*({}{}), v{});", array.name, offset_in_row(array), array.value);
    }
    close();
    close();
    close();
  }

  void write_blocks(int32_t at) {
    line("Total<{}, {}> c{};", reduction(at), kind_of_value(at), at);
    line("int turn{} = 0;", at);
    line("#pragma unroll 4");
    open(
        "for (Index block = column < columns ? static_cast<Index>(threadIdx.y) : blocks; block < "
        "blocks; block += blockDim.y) {{");
    line("c{0}.add(total{0}[block * columns + column]);", at);
    line("if (++turn{0} % 32 == 0) c{0}.close_part();", at);
    close();
    line("{} own{}[1] = {{c{}.result()}};", kind_of_value(at), at, at);
    line("{} v{};", kind_of_value(at), at);
    line("join_columns<{0}>(own{1}, column_shared, [&](Index, {2} all) {{ v{1} = all; }});",
         reduction(at), at, kind_of_value(at));
  }

  // One block adds the partial totals.
  void write_totals_body() {
    const std::vector<bool> needed = made_late(loop_, Level::kTotal);
    open("__device__ __forceinline__ void totals_body(const Slots& a) {{");
    declare_arguments();
    write_values_for_all(needed);
    line("__shared__ double total_shared[{}];", plan_.total_block / 32);
    for (const int32_t at : loop_.totals) {
      if (!needed[static_cast<size_t>(at)]) continue;
      line("Total<{}, {}> t{};", reduction(at), part_type(at), at);
      line(
          "for (Index part = threadIdx.x; part < parts; part += blockDim.x) "
          "t{0}.add(total{0}[part]);",
          at);
      line("const {0} v{1} = static_cast<{0}>(join_block<{2}>(t{1}.total(), total_shared));",
           kind_of_value(at), at, reduction(at));
    }
    open("if (threadIdx.x == 0) {{");
    for (int32_t at = 0; at < expressions(); ++at) {
      const bool made = needed[static_cast<size_t>(at)] && value(at).level == Level::kTotal;
      if (!made || is_total(expression(at).op)) continue;
      write_value(at, [](const Array& array) { return fmt::format("read(*{})", array.name); });
    }
    for (const Array& array : arrays_) {
      if (!array.is_output || loop_.stores[array.index] != Level::kTotal) continue;
      line("write(*{}, v{});", array.name, array.value);
    }
    close();
    close();
  }
};

}  // namespace

KernelSource cuda_source(const CudaPlan& plan) {
  std::string text = Writer(plan).text();
  const std::string symbol = "gallop_" + xxh3_128(text);
  for (size_t at = 0; (at = text.find("SYMBOL", at)) != std::string::npos;) {
    text.replace(at, 6, symbol);
  }
  return {.symbol = symbol, .text = std::move(text)};
}

namespace {

// The header after those that it includes, each once.
std::string with_includes(const std::string& path, std::set<std::string>& taken) {
  if (!taken.insert(path).second) return "";
  for (const EmbeddedHeader& header : embedded_headers()) {
    if (path != header.path) continue;
    std::string text;
    constexpr std::string_view kInclude = "#include \"";
    std::istringstream lines(header.text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(kInclude)) {
        text +=
            with_includes(line.substr(kInclude.size(), line.size() - kInclude.size() - 1), taken);
      } else if (line != "#pragma once") {
        text += line + '\n';
      }
    }
    return text;
  }
  throw InternalError(path + " is not built into the program");
}

}  // namespace

std::string cuda_header(const std::string& path) {
  std::set<std::string> taken;
  return with_includes(path, taken);
}

const std::string& cuda_prefix() {
  static const std::string kPrefix = cuda_header("gallop/compile/codegen/loop_cuda.h") +
                                     cuda_header("gallop/compile/codegen/loop_cuda_reductions.h");
  return kPrefix;
}

}  // namespace gallop::compile

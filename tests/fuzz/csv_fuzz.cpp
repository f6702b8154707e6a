#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/table/csv_records.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(bytes), size);
  for (const bool keeps_blanks : {false, true}) {
    data::CsvRecords records(content, {.file = "input",
                                       .separator = data::detect_separator(content),
                                       .keeps_blanks = keeps_blanks});
    std::vector<data::Cell> cells;
    size_t end = 0;
    try {
      while (records.next(cells)) {
        require(!cells.empty());
        require(records.offset() > end && records.offset() <= size);
        end = records.offset();
        for (const data::Cell& cell : cells) {
          require(cell.offset <= size && cell.text.size() <= size);
          data::csv_place("input", content, cell.offset);
        }
        // The last line may have no end.
        require(records.line() >= 1 && records.lines() + 1 >= records.line());
      }
    } catch (const DataError&) {
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"a,b\n1,2\n",         "a;b\r\n\"x\"\"y\";2\r\n", "a\tb\r1\t\"two\nlines\"\r",
          " a , \"b\" \n\n,\n", "a|b\n\"open\n",           "\"x\"y,1\n"};
}

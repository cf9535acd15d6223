#include "msrl/paper/figures.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace msrl {
namespace internal {
extern const char* const kPaperFigures;  // the contents of figures.txt
}
namespace {

struct Table {
  std::vector<std::string> columns, rows;
  std::vector<std::vector<PaperFigure>> figures;  // one list per row
};

struct Figures {
  std::map<std::string, Table> tables;
  std::vector<std::string> families;
  std::map<std::string, std::string> family_of;
};

Figures Read(std::istringstream text) {
  Figures figures;
  Table* table = nullptr;
  for (std::string line, word, name; std::getline(text, line);) {
    std::istringstream words(line);
    if (!(words >> word) || word.starts_with("#")) continue;
    if (word == "family") {
      words >> name;
      figures.families.push_back(name);
      while (words >> word) figures.family_of[word] = name;
    } else if (word == "table") {
      words >> name;
      table = &figures.tables[name];
      while (words >> word) table->columns.push_back(word);
    } else {
      table->rows.push_back(word);
      std::vector<PaperFigure>& row = table->figures.emplace_back();
      while (words >> word) {
        const std::size_t sign = word.find("+-");
        PaperFigure& figure = row.emplace_back();
        figure.mean = std::stod(word.substr(0, sign));
        if (sign != std::string::npos) figure.std = std::stod(word.substr(sign + 2));
      }
    }
  }
  return figures;
}

const Figures& All() {
  static const Figures figures = Read(std::istringstream(internal::kPaperFigures));
  return figures;
}

}  // namespace

const std::vector<std::string>& PaperRows(const std::string& table) {
  return All().tables.at(table).rows;
}

const std::vector<std::string>& PaperFamilies() { return All().families; }

const std::string& PaperFamily(const std::string& family) {
  const auto found = All().family_of.find(family);
  return found == All().family_of.end() ? family : found->second;
}

std::optional<PaperFigure> FindPaperFigure(const std::string& table, std::string_view row,
                                           std::string_view column) {
  const Table& of = All().tables.at(table);
  const auto r = std::find(of.rows.begin(), of.rows.end(), row) - of.rows.begin();
  const auto c = std::find(of.columns.begin(), of.columns.end(), column) - of.columns.begin();
  if (r == std::ssize(of.rows) || c == std::ssize(of.columns)) return std::nullopt;
  return of.figures[static_cast<std::size_t>(r)].at(static_cast<std::size_t>(c));
}

std::optional<double> PaperGain(std::string_view a, std::string_view b, std::string_view column) {
  const std::string row = std::string(a) + ":" + std::string(b);
  if (const auto gain = FindPaperFigure("gain", row, column)) return gain->mean;
  const auto first = FindPaperFigure("control", a, column);
  const auto second = FindPaperFigure("control", b, column);
  if (!first || !second) return std::nullopt;
  return first->mean - second->mean;
}

}  // namespace msrl

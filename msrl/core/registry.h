// Lists of things that are chosen by an id.
#ifndef MSRL_CORE_REGISTRY_H_
#define MSRL_CORE_REGISTRY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/check.h"

namespace msrl {

// A value: copy it and add rows of your own. An Entry has a member `id`.
template <typename Entry>
class Registry {
 public:
  // `kind` is what an entry is called in errors, e.g. "agent".
  explicit Registry(std::string kind, std::vector<Entry> entries = {}) : kind_(std::move(kind)) {
    for (Entry& entry : entries) Add(std::move(entry));
  }

  // UserError if the id is taken.
  void Add(Entry entry) {
    if (Has(entry.id)) throw UserError(StrCat("there are two of the ", kind_, " '", entry.id, "'"));
    entries_.push_back(std::move(entry));
  }

  // UserError that names the nearest id. The reference holds until the next Add.
  const Entry& Find(std::string_view id) const {
    std::vector<std::string> known;
    for (const Entry& entry : entries_) {
      if (entry.id == id) return entry;
      known.push_back(entry.id);
    }
    throw UserError(StrCat("unknown ", kind_, " '", id, "'", DidYouMean(id, known)));
  }
  bool Has(std::string_view id) const {
    for (const Entry& entry : entries_) {
      if (entry.id == id) return true;
    }
    return false;
  }

  // In the order in which they were added.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace msrl

#endif  // MSRL_CORE_REGISTRY_H_

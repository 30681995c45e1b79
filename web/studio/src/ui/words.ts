// Texts of declarations, for people.

/** The first line of a documentation, without the marks of reStructuredText. */
export function summary(doc: string): string {
  return plain(doc.split("\n")[0]);
}

export function plain(doc: string): string {
  return doc.replace(/:\w+:`~?([^`]+)`/g, "$1").replaceAll("``", "");
}

export const JSON_ONLY: readonly string[] = ['application/json']
